"""The command in every deployment: each subcommand does there what it does on one server, or is refused in words. The
tests of the others are on one server alone."""

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import time

import command
from command import harness, run, start

NAMES = "one", "tcp", "failover", "quorum", "sentinel", "cluster"


class Deployment:
    """What the command is told of it, and the servers that may have a lock."""

    def __init__(self, name, options, servers):
        self.name = name
        self.options = options
        self.servers = servers
        self.in_line = name not in ("failover", "quorum")

    def run(self, context, subcommand, *words, **how):
        said = run(context, subcommand, *self.options, *words, **how)
        said.args = self.name, *said.args  # for who reads of a failure
        return said

    def has(self, key="a"):
        return any(int(server.command("EXISTS", key)) for server in self.servers)


def on_a_port(context, stack, *options):
    """A server with a TCP port, which another process might take first: it, and its port. The stack ends it."""
    for _ in range(10):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with contextlib.suppress(AssertionError):
            server = harness.Server(context.server.process.args[0], "--port", str(port), "--bind", "127.0.0.1", *options)
            stack.callback(server.end)
            return server, port
    raise AssertionError("no port was to be had")


def one(context, stack):
    return ["-u", context.server.url], [context.server]


def tcp(context, stack):
    server, port = on_a_port(context, stack)
    return ["-u", f"redis://127.0.0.1:{port}/1"], []


def failover(context, stack):
    server, port = on_a_port(context, stack)
    return ["-u", f"redis://127.0.0.1:{port}", "--failover-wait", "100ms", "--max-ttl", "1s"], [server]


def quorum(context, stack):
    servers = [on_a_port(context, stack) for _ in range(3)]
    urls = [word for _, port in servers for word in ("-u", f"redis://127.0.0.1:{port}")]
    return [*urls, "--max-ttl", "1s"], [server for server, _ in servers]


def sentinel(context, stack):
    """It asks for a password of its own."""
    server, port = on_a_port(context, stack)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="evlock-"))
    config = os.path.join(folder, "sentinel.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"sentinel monitor mine 127.0.0.1 {port} 1\nuser watcher on >word ~* &* +@all\nuser default off\n")
    program = context.server.process.args[0]
    for _ in range(10):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            watched = probe.getsockname()[1]
        process = subprocess.Popen([program, config, "--sentinel", "--port", str(watched), "--bind", "127.0.0.1"],
                                   stdout=subprocess.DEVNULL)
        stack.callback(lambda process=process: (process.kill(), process.wait()))
        if listens(process, watched):
            # The scheme in whatever case.
            return ["-u", f"Redis+Sentinel://127.0.0.1:{watched}/mine", "--sentinel-user", "watcher"], [server]
    raise AssertionError("no sentinel could be started")


def listens(process, port):
    while process.poll() is None:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()
            return True
        time.sleep(0.01)
    return False


def cluster(context, stack):
    """One master has all slots: what is asked is whether the command can do with a cluster."""
    server, port = on_a_port(context, stack, "--cluster-enabled", "yes")
    server.command("CLUSTER", "ADDSLOTS", *map(str, range(16384)))
    command.wait_for(lambda: "cluster_state:ok" in server.command("CLUSTER", "INFO"), "the cluster")
    return ["-u", f"redis+cluster://127.0.0.1:{port}"], [server]


def each(context):
    """Every deployment, one after the other; it has served, and its servers end with the next."""
    for name in NAMES:
        with contextlib.ExitStack() as stack:
            os.environ.pop("EVLOCK_SENTINEL_PASSWORD", None)
            if name == "sentinel":
                os.environ["EVLOCK_SENTINEL_PASSWORD"] = "word"
            deployment = Deployment(name, *globals()[name](context, stack))
            # At first those that may have forgotten locks are waited for.
            first = deployment.run(context, "run", "--server-wait", "60s", "--ttl", "1s", "first", "echo", "ran")
            assert first.returncode == 0 and first.stdout == "ran\n", first
            yield deployment
    os.environ.pop("EVLOCK_SENTINEL_PASSWORD", None)


def test_each_subcommand_works(context):
    for there in each(context):
        said = there.run(context, "run", "--ttl", "1s", "--fence", "a", "sh", "-c", "echo $EVLOCK_FENCE")
        assert said.returncode == 0 and int(said.stdout) > 0, said
        said = there.run(context, "elect", "--ttl", "1s", "a", "sh", "-c", "exit 7")
        assert said.returncode == 7, said
        assert there.run(context, "wait", "-w", "0", "a").returncode == 0
        assert there.run(context, "status", "a").returncode == 1
        assert there.run(context, "break", "a").returncode == 1
        holds(context, there)
        leases(context, there)


def holds(context, there):
    """Somebody holds the lock, and the others see it."""
    holder = start(context, "hold", *there.options, "--ttl", "1s", "--holder", "me", "--prefix", "p:", "a")
    assert int(holder.line("")) > 0
    said = there.run(context, "status", "--prefix", "p:", "--json", "a")
    told = json.loads(said.stdout)
    assert said.returncode == 0 and told["locked"] and told["holder"] == "me", said
    assert told["waiters"] == (None if there.name == "quorum" else 0) and 0 < told["remaining_ms"] <= 1000, said
    assert there.run(context, "list", "p").stdout == "p:a\n"
    said = there.run(context, "top", "--prefix", "p:")
    assert said.returncode == 0 and "me" in said.stdout, said
    assert there.run(context, "run", "-n", "-E", "9", "--ttl", "1s", "--prefix", "p:", "a", "true").returncode == 9
    assert there.run(context, "wait", "-w", "10ms", "-E", "9", "--prefix", "p:", "a").returncode == 9
    said = there.run(context, "break", "--prefix", "p:", "a")
    assert said.returncode == 0 and "me" in said.stdout, said
    assert command.wait(holder) == 124


def leases(context, there):
    """A lease goes from run to run by its token."""
    with tempfile.NamedTemporaryFile() as token:
        assert there.run(context, "acquire", "--ttl", "1s", "--token-file", token.name, "a").returncode == 0
        for _ in range(3):
            assert there.run(context, "extend", "--ttl", "900ms", "--token-file", token.name, "a").returncode == 0
        assert there.run(context, "release", "--token-file", token.name, "a").returncode == 0
        assert there.run(context, "release", "--token-file", token.name, "a").returncode == 1
    assert not there.has()


def test_a_line_is_where_there_is_one(context):
    for there in each(context):
        said = there.run(context, "run", "--queue", "--ttl", "1s", "a", "true")
        assert (said.returncode == 0) == there.in_line, said
        if not there.in_line:
            assert said.returncode == 125 and "--queue" in said.stderr, said
        assert there.run(context, "run", "--poll", "--ttl", "1s", "a", "true").returncode == 0


def test_the_doctor_knows_each(context):
    for there in each(context):
        said = there.run(context, "doctor", "--ttl", "1s", "--fence")
        assert said.returncode == 0, said
        assert "works" in said.stdout, said


def test_a_server_that_may_not_grant_yet_is_waited_for(context):
    for wait in [], ["--server-wait", "1ms"]:
        said = run(context, "run", "--failover-wait", "300ms", "--max-ttl", "1s", "--ttl", "1s", *wait, "a", "echo", "ran")
        assert said.returncode == 0 and said.stdout == "ran\n", said
        assert context.server.command("DEL", "evlock:history") == 1


def test_what_does_not_go_together_is_refused(context):
    def refuses(part, *words):
        said = run(context, "run", *words, "a", "true")
        assert said.returncode == 125 and part in said.stderr and said.stderr.count("\n") == 1, said
        assert "max_ttl_ms" not in said.stderr, said

    several = ["-u", context.server.url, "-u", "redis://127.0.0.1:1", "-u", "redis://127.0.0.1:2"]
    refuses("--failover-wait", *several, "--failover-wait", "1s")
    refuses("--ttl", *several, "--ttl", "61s")
    refuses("--ttl", "--failover-wait", "1s", "--ttl", "61s")
    refuses("--ttl", *several, "--max-ttl", "5s")
    refuses("--max-ttl", *several, "--max-ttl", "5s")
    refuses("EVLOCK_SENTINEL_PASSWORD", "-u", "redis+sentinel://127.0.0.1:1/mine", "--sentinel-user", "x")
    os.environ["EVLOCK_SENTINEL_PASSWORD"] = "word"
    refuses("the URL has none", "--sentinel-user", "x")
    del os.environ["EVLOCK_SENTINEL_PASSWORD"]


def test_a_ttl_beyond_the_longest_is_refused_by_the_names_of_options(context):
    with tempfile.NamedTemporaryFile() as token:
        words = ["--failover-wait", "1s", "--max-ttl", "5s"]
        said = run(context, "doctor", *words)
        assert said.returncode == 125 and "--ttl" in said.stderr and "--max-ttl" in said.stderr, said
        said = run(context, "extend", *words, "--ttl", "6s", "--token-file", token.name, "a")
        assert said.returncode == 125 and "--ttl" in said.stderr and "--max-ttl" in said.stderr, said
    assert run(context, "run", "--max-ttl", "5s", "a", "true").returncode == 0


def test_any_ttl_goes_with_replicas(context):
    for ttl in "50ms", "4s", "60s", "1d":
        said = run(context, "run", "-n", "--min-replicas", "1", "--ttl", ttl, "a", "true")
        assert said.returncode == 125 and "too few replicas" in said.stderr, said


if __name__ == "__main__":
    command.main(globals())
