"""The short HTTP server: one request at a time for each name, a visitor who leaves, and an orderly end."""

import http.client
import signal
import socket
import threading

import harness


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Visitors:
    """A running server, and those who ask it something."""

    def __init__(self, context):
        self.port = free_port()
        self.program = context.start(str(self.port))
        self.answers = []
        self._threads = []
        harness.wait_for(self._listens, "the port")

    def _listens(self):
        try:
            self.leave_at_once()
            return True
        except OSError:
            return False

    def leave_at_once(self):
        socket.create_connection(("127.0.0.1", self.port)).close()

    def ask(self, path):
        def get():
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=harness.PATIENCE)
            connection.request("GET", path)
            self.answers.append(connection.getresponse().status)

        self._threads.append(threading.Thread(target=get))
        self._threads[-1].start()

    def all_answers(self):
        for thread in self._threads:
            thread.join()
        return sorted(self.answers)


def waiting(context):
    """How many requests wait in line for the lock of /printer."""
    return context.server.command("ZCARD", "{/printer}:queue")


def held(context):
    return context.server.command("GET", "/printer")


def test_requests_take_turns(context):
    visitors = Visitors(context)
    for _ in range(3):
        visitors.ask("/printer")
    harness.wait_for(lambda: waiting(context) == 2, "two in line")
    assert visitors.all_answers() == [200, 200, 200]


def test_a_visitor_who_leaves_gives_up_the_place(context):
    visitors = Visitors(context)
    visitors.ask("/printer")
    harness.wait_for(lambda: held(context), "the work")
    with socket.create_connection(("127.0.0.1", visitors.port)) as leaving:
        leaving.sendall(b"GET /printer HTTP/1.1\r\nHost: here\r\n\r\n")
        harness.wait_for(lambda: waiting(context) == 1, "one in line")
    harness.wait_for(lambda: waiting(context) == 0, "nobody in line")
    assert visitors.all_answers() == [200]


def test_ends_in_good_order(context):
    visitors = Visitors(context)
    visitors.ask("/printer")
    harness.wait_for(lambda: held(context), "the work")
    visitors.ask("/printer")
    harness.wait_for(lambda: waiting(context) == 1, "one in line")
    visitors.program.signal(signal.SIGTERM)
    assert visitors.all_answers() == [200, 503]
    assert visitors.program.end() == 0


def test_says_why_it_cannot_start(context):
    server = context.start_bare("nonsense", "0")
    assert server.end() == 1
    assert server.errors[0].startswith("server: cannot start: "), server.errors


def test_is_the_one_that_the_guide_shows(_):
    harness.check_shown("server.c")


harness.leave_memory()
harness.main(globals())
