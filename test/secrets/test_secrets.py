"""Secrets in memory: each is where it must be, while it is needed, and nowhere else. All memory of a process is searched
from outside: of a program that uses the library, of its forked child, of the command evlock, of its helpers, and of the
command that it runs. What is not evlock's to wipe is the caller's: an environment, and OpenSSL's own key.
"""

import base64
import os
import pathlib
import secrets
import shutil
import signal
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))

import command  # noqa: E402 (they are found by the line before)
import memory  # noqa: E402
import test_tls as certificates  # noqa: E402
from harness import Program  # noqa: E402

OWN = "own page"


def new_password(context=None):
    """A password, which is the worker's on the server, beside those that the worker has."""
    text = secrets.token_hex(24)
    if context:
        context.server.command("ACL", "SETUSER", "worker", "on", ">" + text, "~*", "&*", "+@all")
    return text


def expect(pid, text, *where, when):
    """The password is in these areas, each of which stands there once, and in no other."""
    found = memory.places(pid, memory.Secret(text.encode()))
    assert found == sorted(where), f"{when}: it is in {found}, and not in {sorted(where)}"


class Subject:
    """The program that uses the library."""

    def __init__(self, context):
        self.program = Program([os.environ["EVLOCK_TEST_SUBJECT"]])
        context.programs.append(self.program)
        self.pid = self.program.process.pid

    def tell(self, *words):
        """Has it do this; what the call returned."""
        self.program.say(" ".join(words))
        return int(self.program.line("done").split()[1])

    def hear(self, line):
        self.program.line(line)

    def connects(self, *words):
        assert self.tell("new", *words) == 0
        self.hear("connected")

    def expect(self, text, *where, when):
        expect(self.pid, text, *where, when=when)

    def expect_in_child(self, text, *where, when):
        child = self.tell("fork")
        expect(child, text, *where, when="in a child, " + when)
        os.kill(child, signal.SIGKILL)

    def ends(self, *texts, by="free"):
        """The client ends, and nothing is left."""
        self.tell(by)
        if by == "close":
            self.hear("closed")
        for text in texts:
            self.expect(text, when=by)


def new_password(context):
    """A password that the worker has on the server, beside its others."""
    text = secrets.token_hex(24)
    context.server.command("ACL", "SETUSER", "worker", "on", ">" + text, "~*", "&*", "+@all")
    return text


def hang_up(context):
    context.server.command("CLIENT", "KILL", "USER", "worker")


def open_port(context, setting="port"):
    """Has the server listen on a port, too, which another process might take first."""
    for _ in range(10):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        try:
            context.server.command("CONFIG", "SET", setting, port)
            return port
        except AssertionError:
            pass
    raise AssertionError("no port was to be had")


# --- Of the library ---------------------------------------------------------------------------------------------------


def test_of_the_options(context):
    first = new_password(context)
    subject = Subject(context)
    subject.connects(context.server.url, "user=worker", "password=" + first)
    subject.expect(first, OWN, when="logged in")
    subject.expect_in_child(first, when="logged in")
    hang_up(context)
    subject.hear("connected")
    subject.expect(first, OWN, when="logged in again")
    second = new_password(context)
    assert subject.tell("login", "worker", second) == 0
    subject.hear("renewed")
    subject.expect(first, when="replaced")
    subject.expect(second, OWN, when="it replaced another")
    subject.ends(first, second)


def test_of_the_url(context):
    password = new_password(context)
    encoded = "".join(f"%{ord(letter):02x}" for letter in password)
    subject = Subject(context)
    subject.connects(f"redis://worker:{encoded}@127.0.0.1:{open_port(context)}/")
    subject.expect(password, OWN, when="logged in")
    subject.expect(encoded, when="logged in")
    subject.expect_in_child(password, when="logged in")
    subject.ends(password, encoded, by="close")
    assert subject.tell("new", f"redis://worker:{password}%zz@127.0.0.1/") != 0
    subject.expect(password, when="of a URL that is wrong")


def test_that_is_asked_for(context):
    first, second = new_password(context), new_password(context)
    subject = Subject(context)
    assert subject.tell("new", context.server.url, "asks") == 0
    subject.hear("asked")
    assert subject.tell("login", "worker", first) == 0
    subject.hear("connected")
    subject.expect(first, when="logged in")
    assert subject.tell("login", "worker", second) == 0
    subject.hear("renewed")
    subject.expect(second, when="logged in anew")
    hang_up(context)
    subject.hear("asked")
    wrong = secrets.token_hex(24)
    assert subject.tell("login", "worker", wrong) == 0
    subject.hear("asked")
    assert subject.tell("login", "worker", wrong) == 0
    subject.hear("away")
    subject.expect(wrong, when="refused")
    subject.ends(first, second, wrong)


def test_that_nobody_takes(context):
    """Given while there is no server: it waits for one."""
    first, second = secrets.token_hex(24), secrets.token_hex(24)
    subject = Subject(context)
    assert subject.tell("new", context.server.url + ".absent", "asks") == 0
    subject.hear("away")
    assert subject.tell("login", "worker", first) == 0
    subject.expect(first, OWN, when="given")
    assert subject.tell("login", "worker", second) == 0
    subject.expect(first, when="replaced")
    subject.expect(second, OWN, when="it replaced another")
    subject.expect_in_child(second, when="given")
    subject.ends(first, second)


def test_that_is_refused(context):
    new_password(context)
    wrong, worse = secrets.token_hex(24), secrets.token_hex(24)
    subject = Subject(context)
    assert subject.tell("new", context.server.url, "user=worker", "password=" + wrong) == 0
    subject.hear("away")
    subject.expect(wrong, OWN, when="refused, and to be tried again")
    assert subject.tell("login", "worker", worse) == 0
    subject.hear("away")
    subject.expect(wrong, when="replaced by another that is refused")
    subject.ends(wrong, worse, by="close")


def test_of_a_file(context):
    first, second = new_password(context), new_password(context)
    path = pathlib.Path(context.server.folder, "password")
    path.write_text(first + "\n", encoding="utf-8")
    subject = Subject(context)
    subject.connects(context.server.url, "user=worker", f"file={path}")
    subject.expect(first, when="logged in")
    path.write_text(second + "\n", encoding="utf-8")
    assert subject.tell("login", "-", "-") == 0
    subject.hear("renewed")
    hang_up(context)
    subject.hear("connected")
    subject.expect(second, when="logged in again")
    path.write_text(first + "\0", encoding="utf-8")
    assert subject.tell("login", "-", "-") != 0
    path.write_text(first[:-1], encoding="utf-8")
    hang_up(context)
    subject.hear("away")
    subject.expect(first, when="refused")
    subject.ends(first, second)
    path.unlink()


def test_of_sentinels(context):
    first, second = secrets.token_hex(24), secrets.token_hex(24)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        subject = Subject(context)
        url = f"redis+sentinel://worker:{first}@127.0.0.1:{silent.getsockname()[1]}/name"
        assert subject.tell("new", url, "sentinel=" + second) == 0
        with silent.accept()[0] as connection:
            assert connection.recv(4096), "no login came"
            subject.expect(first, OWN, when="kept for the master")
            subject.expect(second, OWN, when="kept for the Sentinels")
            subject.expect_in_child(second, when="kept for the Sentinels")
            subject.ends(first, second)


def test_on_its_way_to_a_server_that_reads_nothing(context):
    """What is queued is hiredis's, until the client goes."""
    password = secrets.token_hex(24)
    path = os.path.join(context.server.folder, "silent")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(path)
        silent.listen()
        subject = Subject(context)
        assert subject.tell("new", "unix://" + path, "user=worker", "password=" + 20000 * password) == 0
        with silent.accept()[0] as connection:
            connection.recv(1)
            subject.expect(password, OWN, "[heap]", when="on its way")
            subject.ends(password)
    os.unlink(path)


# --- Over TLS ---------------------------------------------------------------------------------------------------------


class Tls:
    """Has the server listen for TLS, with certificates in its folder; `words` and `pair` are a client's options."""

    def __init__(self, context):
        self.folder = context.server.folder
        certificates.make_certificates(self.folder)
        self.words = [f"ca={self.folder}/ca.crt", "name=" + certificates.NAME]
        for name in "cert", "key", "ca-cert":
            file = "ca.crt" if name == "ca-cert" else "server." + name.replace("cert", "crt")
            context.server.command("CONFIG", "SET", f"tls-{name}-file", os.path.join(self.folder, file))
        self.url = "rediss://127.0.0.1:" + open_port(context, "tls-port")
        self.pair = [f"cert={self.folder}/client.crt", f"key={self.folder}/client.key"]

    def key(self):
        """The client's: the file's text, and the number as OpenSSL calculates with it."""
        lines = pathlib.Path(self.folder, "client.key").read_bytes().split(b"\n")[1:-2]
        whole = base64.b64decode(b"".join(lines))
        begin = whole.index(b"\x02\x01\x01\x04\x20") + 5
        return memory.Secret(*lines), memory.Secret(whole[begin:begin + 32][::-1])


def check_key(subject, key, *where, when):
    """OpenSSL has the number while it needs it. It also leaves pieces of the text in what it gives back to the heap, which
    nobody can wipe. What evlock has read is not kept."""
    text, number = key
    found = memory.places(subject.pid, text)
    assert set(found) <= {"[heap]"}, f"{when}: the text of the key's file is in {found}"
    found = memory.places(subject.pid, number)
    assert found == sorted(where), f"{when}: the key is in {found}, and not in {sorted(where)}"


def test_of_a_key(context):
    tls = Tls(context)
    first = tls.key()
    subject = Subject(context)
    subject.connects(tls.url, *tls.words, *tls.pair)
    check_key(subject, first, "[heap]", when="connected")
    certificates.make_certificates(tls.folder)
    second = tls.key()
    context.server.command("CLIENT", "KILL", "TYPE", "normal")
    subject.hear("away")  # since the server goes on with the old ones
    check_key(subject, first, when="replaced")
    check_key(subject, second, "[heap]", when="it replaced another")
    subject.tell("close")
    subject.hear("closed")
    check_key(subject, first, when="closed")
    check_key(subject, second, when="closed")
    other = [*tls.pair[:1], f"key={tls.folder}/server.key"]
    assert subject.tell("new", tls.url, *tls.words, *other) != 0, "the key of another certificate was taken"
    check_key(subject, first, when="refused")


def test_over_tls(context):
    """A password that is sent over it, and what a server says, whose plain text is not left beneath the calls."""
    tls = Tls(context)
    password, said = new_password(context), secrets.token_hex(24)
    subject = Subject(context)
    subject.connects(tls.url, "user=worker", "password=" + password, *tls.words, *tls.pair)
    subject.expect(password, OWN, when="logged in")
    context.server.command("SET", "a", said, "PX", "600000")
    subject.tell("ask", "a")
    subject.hear("answered")
    found = memory.places(subject.pid, memory.Secret(said.encode()))
    assert set(found) <= {"[heap]"}, f"what the server said is in {found}"  # where hiredis reads
    subject.ends(password)
    context.server.command("DEL", "a")


# --- Of the command ---------------------------------------------------------------------------------------------------


def program_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None


def check_command(context, environment, options, texts, kept, passed):
    """Runs a command. The secret is in evlock's memory in the areas `kept`, in the command's and in that of evlock's
    helpers in the areas `passed`, and behind no descriptor."""
    os.environ.update(environment)
    try:
        words = [context.program, "run", *options, "a", "cat"]
        program = Program(["sh", "-c", 'exec "$@" 7< "$0"', f"{context.server.folder}/password", *words])
    finally:
        for name in environment:
            del os.environ[name]
    context.programs.append(program)
    program.say("runs")
    program.line("runs")
    evlock = program.process.pid
    others = list(command.descendants(evlock))
    assert [program_of(pid) for pid in others].count(program_of(evlock)) < len(others), "there is no command"
    for text in texts:
        expect(evlock, text, *kept, when="evlock's own")
        for pid in others:
            expect(pid, text, *passed, when=f"of {program_of(pid)}")
    for pid in others:
        files = [os.readlink(file) for file in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
        if "--password-fd" in options:
            assert not any(file.endswith("/password") for file in files), (program_of(pid), files)
    assert program.end() == 0


def test_of_the_command(context):
    password = new_password(context)
    path = pathlib.Path(context.server.folder, "password")
    path.write_text(password + "\n", encoding="utf-8")
    here = ["-u", context.server.url, "--user", "worker"]
    there = f"redis://worker:{password}@127.0.0.1:{open_port(context)}"
    file = ["--password-file", str(path)]

    def check(options, kept, passed, **environment):
        check_command(context, environment, options, [password], kept, passed)

    check([*here, *file], [], [])
    check([*here, "--password-fd", "7"], [OWN], [])
    check(here, [], [], EVLOCK_PASSWORD_FILE=str(path))
    # The environment is passed on, as of any program; it is where the stack begins.
    check(here, [OWN, "[stack]"], ["[stack]"], EVLOCK_PASSWORD=password)
    check([], [OWN, "[stack]"], ["[stack]"], EVLOCK_URL=there)
    path.unlink()


def without_tls():
    """Why nothing is tried over TLS; None: it is."""
    if shutil.which("openssl") and certificates.speaks_tls():
        return None
    return "there is no openssl, or the server speaks no TLS"


if __name__ == "__main__":
    # What is freed stays in memory: meson would have it overwritten, and the allocator gives much of it back.
    os.environ.update(MALLOC_PERTURB_="0", MALLOC_MMAP_THRESHOLD_="1000000000", MALLOC_TRIM_THRESHOLD_="1000000000")
    reason = memory.missing()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    reason = without_tls()
    if reason:
        print(f"# nothing is tried over TLS: {reason}")
        del test_of_a_key, test_over_tls
    command.main(globals())
