"""The HTTP server: its answers, that nobody waits who need not, and what it does for clients that go away."""

import http.client
import signal
import socket
import threading
import time

import harness


class Served:
    """The server under test and the requests that are made of it."""

    def __init__(self, context, *arguments):
        self.context = context
        self.program = context.start("--port", "0", *arguments)
        self.port = int(self.program.line("listening on ").rsplit(":", 1)[1])

    def get(self, target, method="GET"):
        """One request on a connection of its own: (status, text)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=harness.PATIENCE)
        try:
            connection.request(method, target)
            response = connection.getresponse()
            return response.status, response.read().decode().strip()
        finally:
            connection.close()

    def send(self, *targets):
        """A connection on which the targets were asked for, all at once, and nothing was read yet."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=harness.PATIENCE)
        connection.sendall("".join(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n" for target in targets).encode())
        return connection

    def start_gets(self, targets):
        return [Get(self, target) for target in targets]

    def end(self):
        self.program.signal(signal.SIGTERM)
        assert self.program.end() == 0
        assert not self.program.errors or all(line.startswith(("http-server: ", "evlock: ")) for line in self.program.errors)


class Get(threading.Thread):
    """A request under way."""

    def __init__(self, served, target):
        super().__init__()
        self.served, self.target, self.answer = served, target, None
        self.start()

    def run(self):
        try:
            self.answer = self.served.get(self.target)
        except OSError as error:
            self.answer = (0, str(error))

    def wait(self):
        self.join(timeout=harness.PATIENCE)
        return self.answer


def wait_for_attempts(context, more):
    """Waits until so many more attempts were made to get locks."""
    before = context.server.attempts()
    harness.wait_for(lambda: context.server.attempts() >= before + more, "attempts")


def wait_for_quiet(context):
    """Waits until nobody tries to get a lock any more."""

    def quiet():
        before = context.server.attempts()
        time.sleep(0.5)
        return context.server.attempts() == before

    harness.wait_for(quiet, "the end of all attempts")


def test_answers_and_gives_the_lock_back(context):
    served = Served(context)
    assert served.get("/printer?ms=20") == (200, "done")
    assert served.get("/printer") == (200, "done")
    assert context.keys() == 0
    served.end()


def test_the_resource_is_the_lock(context):
    served = Served(context)
    work = served.start_gets(["/a%20b%2Fc?ms=2000"])[0]
    harness.wait_for(lambda: context.keys() == 1, "the key")
    assert context.server.command("KEYS", "*") == ["a b/c"]
    assert work.wait() == (200, "done")
    served.end()


def test_requests_for_free_resources_do_not_wait_for_busy_ones(context):
    """The busy one is held until all the free ones were answered: were one of them to wait, this would never end."""
    served = Served(context, "--wait", "60000")
    holder = served.send("/busy?ms=60000")
    harness.wait_for(lambda: context.server.command("EXISTS", "busy"), "the holder")
    waiting = served.start_gets(["/busy?ms=0"] * 50)
    wait_for_attempts(context, 100)
    free = served.start_gets([f"/free-{i}?ms=10" for i in range(100)])
    assert {get.wait() for get in free} == {(200, "done")}
    assert not [get for get in waiting if get.answer]
    assert context.server.command("KEYS", "*") == ["busy"]
    holder.close()
    assert {get.wait() for get in waiting} == {(200, "done")}
    served.end()


def test_waits_no_longer_than_its_limit(context):
    context.server.command("SET", "busy", "another")
    served = Served(context, "--wait", "300")
    status, text = served.get("/busy")
    assert status == 503 and "done" not in text
    assert context.server.command("GET", "busy") == "another"
    context.server.command("DEL", "busy")
    assert served.get("/busy?ms=0") == (200, "done")
    served.end()


def test_a_client_that_goes_away_gives_up_its_place(context):
    context.server.command("SET", "busy", "another")
    served = Served(context, "--wait", "600000")
    clients = [served.send("/busy?ms=0") for _ in range(5)]
    wait_for_attempts(context, 10)
    for client in clients:
        client.close()
    wait_for_quiet(context)
    context.server.command("DEL", "busy")
    assert context.keys() == 0
    assert served.get("/busy?ms=0") == (200, "done")
    served.end()


def test_a_client_that_goes_away_ends_its_work(context):
    served = Served(context)
    client = served.send("/busy?ms=60000")
    harness.wait_for(lambda: context.keys() == 1, "the key")
    client.close()
    harness.wait_for(lambda: context.keys() == 0, "the release")
    served.end()


def test_a_lost_lease_is_answered_503(context):
    served = Served(context)
    gone, taken = served.start_gets(["/gone?ms=60000", "/taken?ms=60000"])
    harness.wait_for(lambda: context.keys() == 2, "the keys")
    context.server.command("DEL", "gone")
    context.server.command("SET", "taken", "another")
    assert gone.wait()[0] == 503 and taken.wait()[0] == 503
    assert "lost" in gone.answer[1]
    assert context.server.command("GET", "taken") == "another"
    context.server.command("DEL", "taken")
    served.end()


def test_a_lease_is_renewed_for_as_long_as_the_work_takes(context):
    served = Served(context, "--ttl", "300")
    assert served.get("/long?ms=1500") == (200, "done")
    served.end()


def test_a_connection_serves_one_request_after_the_other(context):
    """What a client sends before it has its answer is kept for its turn, and is not taken for its going away."""
    context.server.command("SET", "busy", "another")
    served = Served(context, "--wait", "60000")
    client = served.send("/busy?ms=0")
    wait_for_attempts(context, 3)
    long = b"X: %s\r\n" % (b"x" * 10000)
    client.sendall(b"GET /other?ms=0 HTTP/1.1\r\nHost: x\r\n" + long + b"Connection: close\r\n\r\n")
    wait_for_attempts(context, 3)
    context.server.command("DEL", "busy")
    with client, client.makefile("rb") as stream:
        assert stream.read().count(b"HTTP/1.1 200 OK") == 2
    with served.send("/a?ms=0", "/b?ms=0", "/c?ms=0") as client, client.makefile("rb") as stream:
        for _ in range(3):
            while stream.readline() != b"done\n":
                pass
    assert served.get("/busy?ms=0") == (200, "done")
    served.end()


def test_a_client_cannot_fill_the_memory_while_it_waits(context):
    context.server.command("SET", "busy", "another")
    served = Served(context, "--wait", "60000")
    client = served.send("/busy?ms=0")
    wait_for_attempts(context, 3)
    client.settimeout(1)
    sent = 0
    try:
        while sent < 100_000_000:
            sent += client.send(b"x" * 100_000)
    except TimeoutError:
        pass
    assert sent < 100_000_000, "the server does not read on"
    assert served.get("/free?ms=0") == (200, "done")
    client.close()
    context.server.command("DEL", "busy")
    served.end()


def test_wrong_requests_are_answered_400(context):
    served = Served(context)
    for target in "/", "/x?ms=-1", "/x?ms=60001", "/x?ms=1x", "/x?ms=", "/" + "x" * 513:
        status, text = served.get(target)
        assert status == 400 and text, target
    assert served.get("/x", method="POST")[0] in (405, 501)
    assert served.get("/" + "x" * 512 + "?ms=0") == (200, "done")
    served.end()


def test_ends_in_good_order(context):
    """Those who wait and those who work are answered before the end."""
    for number in signal.SIGTERM, signal.SIGINT:
        context.server.command("SET", "busy", "another")
        served = Served(context, "--wait", "60000")
        gets = served.start_gets(["/busy"] * 5 + ["/work?ms=60000"])
        harness.wait_for(lambda: context.keys() == 2, "the work")
        wait_for_attempts(context, 10)
        served.program.signal(number)
        assert served.program.end() == 0
        assert {get.wait()[0] for get in gets} == {503}
        context.server.command("DEL", "busy")
        assert context.keys() == 0


def test_says_that_there_is_no_server(context):
    harness.check_no_server(context, "--port", "0")


def test_refuses_wrong_command_lines(context):
    for arguments in [], ["a", "b"], ["unix:///x", "--port", "65536"], ["unix:///x", "--what"]:
        assert context.start_bare(*arguments).end() == 2
    assert context.start_bare("nonsense", "--port", "0").end() == 1
    assert context.start_bare("--help").end() == 0


def test_a_port_in_use_is_told(context):
    served = Served(context)
    other = context.start("--port", str(served.port))
    assert other.end() == 1
    assert "listen" in other.errors[-1]
    served.end()


harness.main(globals())
