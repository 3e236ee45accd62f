"""What the tests of the examples share: a private server, the program under test, and TAP for test/count.

A test file defines functions test_*(context) and ends with harness.main(globals()); its one argument is the program.
Each function gets a server of its own on a unix socket in a temporary folder, and has to leave no key on it. Only the
standard library is used.
"""

import fnmatch
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

PATIENCE = 60  # seconds, for what a loaded machine may take long to do


def wait_for(condition, what):
    """Returns the first true value of condition(), asked again and again."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"in vain waited for: {what}")


class Server:
    """A server that keeps nothing, on a unix socket; with more options, which come last."""

    def __init__(self, program, *more):
        self.folder = tempfile.mkdtemp(prefix="evlock-")
        self.path = os.path.join(self.folder, "redis.sock")
        self.url = "unix://" + self.path
        options = ["--port", "0", "--unixsocket", self.path, "--dir", self.folder, "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen([program, *options, *more], stdout=subprocess.DEVNULL)
        try:
            wait_for(self.answers, "the server")
        except AssertionError:
            self.end()
            raise

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError("the server ended")
        try:
            return self.command("PING") == "PONG"
        except (OSError, EOFError):
            return False

    def command(self, *words):
        """Runs one command on a connection of its own."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(self.path)
            request = b"*%d\r\n" % len(words)
            for word in map(str.encode, words):
                request += b"$%d\r\n%s\r\n" % (len(word), word)
            connection.sendall(request)
            with connection.makefile("rb") as stream:
                return self._reply(stream)

    def _reply(self, stream):
        line = stream.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError
        kind, text = line[:1], line[1:-2].decode()
        if kind == b"$":
            size = int(text)
            return None if size < 0 else stream.read(size + 2)[:-2].decode()
        if kind == b"*":
            return [self._reply(stream) for _ in range(int(text))]
        if kind == b"-":
            raise AssertionError(text)
        return int(text) if kind == b":" else text

    def attempts(self):
        """How many scripts and SETs were run so far: it grows for as long as anyone tries to get a lock."""
        attempts = 0
        for line in self.command("INFO", "commandstats").splitlines():
            if line.startswith(("cmdstat_set:", "cmdstat_evalsha:")):
                attempts += int(line.split("calls=")[1].split(",")[0])
        return attempts

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.thaw()
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)


class Program:
    """A running example, whose lines can be waited for."""

    def __init__(self, arguments):
        self.output = []
        self.errors = []
        self._lines = queue.Queue()
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(arguments, text=True, **pipes)
        # Daemons: the end of the tests waits for none whose pipe is held open by what a test has left.
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self.output, self._lines), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stderr, self.errors, None), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream, kept, lines):
        for line in stream:
            kept.append(line.rstrip("\n"))
            if lines:
                lines.put(kept[-1])
        if lines:
            lines.put(None)

    def say(self, line):
        """Gives it a line of input."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def line(self, part):
        """The next line of the output that contains `part`; those before it are passed over, for as long as others wait."""
        end = time.monotonic() + PATIENCE
        while True:
            line = self._lines.get(timeout=max(0, end - time.monotonic()))
            assert line is not None, f"the output ended without: {part}"
            if part in line:
                return line

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        """Waits for the end; the exit status. What it and its children wrote has been read by then."""
        status = self.process.wait(timeout=PATIENCE)
        for reader in self._readers:
            reader.join(timeout=PATIENCE)
            assert not reader.is_alive(), "somebody keeps its output open"
        return status

    def end(self):
        """Ends the input and waits for the end; the exit status."""
        self.process.stdin.close()
        return self.wait()

    def show(self):
        for line in self.output:
            print(f"#   {line}")
        for line in self.errors:
            print(f"#   (error) {line}")


class Context:
    """What one test works with."""

    def __init__(self, server_program, program):
        self.server = Server(server_program)
        self.programs = []
        self._program = program

    def command(self, *arguments):
        """The words that run the example on the test's server."""
        return [*wrapper(), self._program, self.server.url, *arguments]

    def start(self, *arguments):
        """Starts the example on the test's server."""
        return self._start(self.command(*arguments))

    def start_bare(self, *arguments):
        """Starts the example with these arguments alone."""
        return self._start([*wrapper(), self._program, *arguments])

    def _start(self, command):
        self.programs.append(Program(command))
        return self.programs[-1]

    def keys(self):
        return self.server.command("DBSIZE")

    def close(self):
        for program in self.programs:
            if program.process.poll() is None:
                program.process.kill()
            program.end()
        self.server.end()


def wrapper():
    """What EVLOCK_TEST_WRAPPER puts before the program, such as valgrind."""
    return os.environ.get("EVLOCK_TEST_WRAPPER", "").split()


def check_no_server(context, *arguments, patient=True):
    """Without a server the example says so, and ends with 1. With one that is silent it says so; to be patient is to
    await the end then, too."""
    absent = context.start_bare(context.server.url + ".absent", *arguments)
    wait_for(lambda: absent.errors, "a word about the server")
    assert "No such file or directory" in absent.errors[0], absent.errors
    context.server.freeze()
    silent = context.start(*arguments)
    wait_for(lambda: silent.errors, "a word about the silent server")
    assert "no answer to the login within" in silent.errors[0], silent.errors
    assert not patient or silent.end() == 1
    context.server.thaw()
    assert absent.end() == 1


def check_shown(name):
    """The guide shows this example, as it is."""
    tree = pathlib.Path(__file__).resolve().parents[2]
    shown = "```c\n" + (tree / "examples" / name).read_text(encoding="utf-8") + "```\n"
    assert shown in (tree / "docs/guide.md").read_text(encoding="utf-8"), f"the guide shows another {name}"


def run(test, server_program, program):
    """Runs one test; whether it passed."""
    context = Context(server_program, program)
    try:
        test(context)
        assert context.keys() == 0, f"left on the server: {context.server.command('KEYS', '*')}"
        return True
    except Exception:
        for line in traceback.format_exc().splitlines():
            print(f"# {line}")
        for started in context.programs:
            started.show()
        return False
    finally:
        context.close()


def leave_memory():
    """A short program leaves to the system what it has when it ends: the leak sanitizer has nothing to say."""
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"


def main(names):
    """Runs the tests of a file in their order: those whose name matches EVLOCK_TEST_FILTER, as in C."""
    server_program = os.environ.get("EVLOCK_TEST_SERVER", "redis-server")
    if not shutil.which(server_program):
        print(f"no {server_program}")
        sys.exit(77)
    wanted = "test_" + os.environ.get("EVLOCK_TEST_FILTER", "*")
    tests = [value for name, value in names.items() if fnmatch.fnmatchcase(name, wanted)]
    print(f"1..{len(tests)}")
    failed = 0
    for number, test in enumerate(tests, 1):
        passed = run(test, server_program, sys.argv[1])
        failed += not passed
        print(f"{'ok' if passed else 'not ok'} {number} - {test.__name__[5:]}", flush=True)
    sys.exit(failed > 0)
