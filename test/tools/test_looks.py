"""evlock status, list, top, wait and break: what is said of locks, whoever holds them."""

import contextlib
import json
import os
import re
import signal
import termios

import command
import harness
from command import run, start, status
from test_terminal import Terminal

FREE = 1
TROUBLE = 125


def say(context, *arguments):
    return run(context, *arguments).stdout


def answer(context, *arguments):
    return json.loads(say(context, *arguments, "--json"))


@contextlib.contextmanager
def holding(context, name="a", *options):
    """Somebody holds it meanwhile."""
    holder = start(context, "hold", "--holder", "somebody", *options, name)
    holder.line("")
    yield holder
    if holder.process.poll() is None:
        assert holder.end() == 0


@contextlib.contextmanager
def three_servers(context):
    """Options that name three servers, and the servers."""
    servers = [context.server] + [harness.Server(context.server.process.args[0]) for _ in range(2)]
    try:
        yield [word for server in servers for word in ("-u", server.url)], servers
    finally:
        for server in servers[1:]:
            server.end()


# --- status -----------------------------------------------------------------------------------------------------------


def test_status_says_who_holds(context):
    with holding(context, "a", "--ttl", "60s"):
        waiter = start(context, "run", "a", "true")
        command.queued(context)
        said = run(context, "status", "a")
        assert said.returncode == 0, said
        assert re.fullmatch("held:      yes\nholder:    somebody\nremaining: [0-9.]+s\nwaiters:   1\n", said.stdout), said
        said = answer(context, "status", "a")
        assert 0 < said.pop("remaining_ms") <= 60_000
        assert said == {"name": "a", "locked": True, "holder": "somebody", "waiters": 1}, said
    assert command.wait(waiter) == 0


def test_status_of_what_nobody_holds(context):
    said = run(context, "status", "a")
    assert (said.returncode, said.stdout) == (FREE, "held:      no\nwaiters:   0\n"), said
    nobody = {"name": "a", "locked": False, "holder": None, "remaining_ms": None, "waiters": 0}
    assert answer(context, "status", "a") == nobody


def test_status_of_what_a_stranger_holds(context):
    context.server.command("SET", "a", "a-stranger")
    assert say(context, "status", "a") == "held:      yes\nholder:    unknown\nremaining: for ever\nwaiters:   0\n"
    context.server.command("DEL", "a")
    context.server.command("LPUSH", "a", "1")
    said = run(context, "status", "a")
    assert said.returncode == TROUBLE and "not a lock" in said.stderr, said
    context.server.command("DEL", "a")


def test_a_holder_is_shown_as_it_may_be(context):
    name = "evil\x1b[2J\\\x7f\N{LATIN SMALL LETTER E WITH ACUTE}\x9b"
    context.server.command("SET", "a", name + "/" + "0" * 8 + "-0000-4000-8000-" + "0" * 12)
    assert r"holder:    evil\x1b[2J\x5c\x7fé\xc2\x9b" + "\n" in say(context, "status", "a")
    assert answer(context, "status", "a")["holder"] == name
    context.server.command("DEL", "a")


# --- list -------------------------------------------------------------------------------------------------------------


def fill(context, *names):
    for name in names:
        context.server.command("SET", name, "t")


def empty(context):
    context.server.command("FLUSHALL")


def test_list_prints_names(context):
    fill(context, "jobs:b", "jobs:a", "job", "jobs*", "with\nnewline")
    context.server.command("LPUSH", "jobs:list", "1")
    with holding(context, "jobs:{c}"):
        assert say(context, "list") == "job\njobs*\njobs:a\njobs:b\njobs:{c}\nwith\\x0anewline\n"
        assert say(context, "list", "jobs:") == "jobs:a\njobs:b\njobs:{c}\n"
        assert say(context, "list", "--prefix", "jobs:") == "a\nb\n{c}\n"
        assert say(context, "list", "--prefix", "jobs", "*") == "*\n"
    assert answer(context, "list", "w") == ["with\nnewline"]
    empty(context)
    assert (say(context, "list"), answer(context, "list")) == ("", [])


def test_list_goes_through_all_keys(context):
    context.server.command("EVAL", "for i = 1, 3000 do redis.call('SET', 'n' .. i, 't') end", "0")
    assert sorted(say(context, "list", "n").splitlines()) == sorted(f"n{i}" for i in range(1, 3001))
    empty(context)


def test_several_servers_are_asked(context):
    with three_servers(context) as (urls, servers):
        for server in servers[:2]:
            server.command("SET", "a", "t", "PX", "60000")
        servers[2].command("SET", "b", "t")
        assert say(context, "list", *urls) == "a\nb\n"
        said = answer(context, "status", *urls, "a")
        assert said["locked"] and said["waiters"] is None, said
        assert status(context, "status", *urls, "b") == FREE
        assert "a  " in say(context, "top", *urls)
        assert answer(context, "break", *urls, "a") == {"name": "a", "broken": True, "holder": None}
        assert status(context, "status", *urls, "a") == FREE
        servers[2].process.kill()
        servers[2].process.wait()
        said = run(context, "list", *urls)
        assert said.returncode == 0 and "b" not in said.stdout, said
        servers[1].process.kill()
        servers[1].process.wait()
        assert status(context, "list", *urls) == TROUBLE


# --- top --------------------------------------------------------------------------------------------------------------


def test_top_writes_a_table_once(context):
    with holding(context, "jobs:a", "--ttl", "60s"), holding(context, "jobs:b"):
        fill(context, "other")
        first, *rows = say(context, "top", "jobs:").splitlines()
        assert first.split() == ["NAME", "HOLDER", "REMAINING", "WAITERS"]
        assert [row.split()[:2] for row in rows] == [["jobs:a", "somebody"], ["jobs:b", "somebody"]], rows
        assert re.fullmatch(r"\S+ +\S+ +[0-9.]+s +0", rows[0]), rows
        assert [row["name"] for row in answer(context, "top")] == ["jobs:a", "jobs:b", "other"]
        context.server.command("DEL", "other")


def test_top_is_drawn_again_until_q(context):
    with holding(context, "first"):
        terminal = Terminal(context, "top", "--every", "100ms")
        before = terminal.see("1 lock; q ends this") and termios.tcgetattr(terminal._fd)
        assert not before[3] & termios.ECHO
        with holding(context, "second"):
            terminal.see(r"2 locks; q ends this[^q]*first[^q]*second")
        terminal.shown = ""
        terminal.see("1 lock; q ends this")
        terminal.press(b"xq")
        assert os.waitstatus_to_exitcode(terminal.wait()) == 0
        terminal.close()


def test_top_gives_the_terminal_back(context):
    for key, end in ((b"\x03", 0), (b"\x1c", 128 + signal.SIGQUIT)):
        terminal = Terminal(context, "top", "--every", "10s")
        terminal.see("0 locks; q ends this")
        terminal.press(key)
        terminal.see(r"\x1b\[\?25h")
        assert termios.tcgetattr(terminal._fd)[3] & termios.ECHO
        assert os.waitstatus_to_exitcode(terminal.wait()) == end
        terminal.close()


def test_top_is_stopped_and_goes_on(context):
    terminal = Terminal(context, "top", "--every", "100ms")
    terminal.see("0 locks")
    terminal.press(b"\x1a")
    assert os.WIFSTOPPED(terminal.wait(os.WUNTRACED))
    assert termios.tcgetattr(terminal._fd)[3] & termios.ECHO
    terminal.shown = ""
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.see("0 locks")
    terminal.press(b"q")
    assert os.waitstatus_to_exitcode(terminal.wait()) == 0
    terminal.close()


def test_top_outlives_the_server(context):
    server = harness.Server(context.server.process.args[0])
    terminal = Terminal(context, "top", "--every", "100ms", "-u", server.url)
    terminal.see("0 locks; q")
    server.end()
    terminal.see("0 locks; the server cannot be reached; q")
    terminal.press(b"q")
    assert os.waitstatus_to_exitcode(terminal.wait()) == 0
    terminal.close()


# --- wait -------------------------------------------------------------------------------------------------------------


def test_wait_ends_when_the_lock_is_free(context):
    assert status(context, "wait", "a") == 0
    with holding(context) as holder:
        assert status(context, "wait", "-w", "0", "a") == 1
        assert status(context, "wait", "-w", "50ms", "--every", "10ms", "-E", 7, "a") == 7
        assert json.loads(run(context, "wait", "-w", "1s", "--every", "10ms", "--json", "a").stdout)["locked"]
        program = start(context, "wait", "--json", "a")
        command.wait_for(lambda: context.server.command("CLIENT", "LIST").count("name=evlock") == 2, "two at work")
        assert program.process.poll() is None
        holder.process.stdin.close()
        assert not json.loads(program.line("name"))["locked"]
        assert command.wait(program) == 0
        assert command.wait(holder) == 0


def test_wait_ends_with_the_lease(context):
    context.server.command("SET", "a", "t", "PX", "300")
    assert status(context, "wait", "--every", "60s", "a") == 0


# --- break ------------------------------------------------------------------------------------------------------------


def test_break_says_whom(context):
    with holding(context) as holder:
        said = run(context, "break", "a")
        assert (said.returncode, said.stdout) == (0, "broken; the holder was somebody\n"), said
        assert command.wait(holder) == 124
    said = run(context, "break", "a")
    assert said.returncode == FREE and "nobody holds a" in said.stderr, said
    said = run(context, "break", "--json", "a")
    assert said.returncode == FREE and json.loads(said.stdout) == {"name": "a", "broken": False, "holder": None}, said


def test_break_hands_on(context):
    command.block(context)
    waiter = start(context, "run", "a", "echo", "mine")
    command.queued(context)
    assert answer(context, "break", "a") == {"name": "a", "broken": True, "holder": None}
    waiter.line("mine")
    assert command.wait(waiter) == 0


def test_a_terminal_sees_no_control_characters(context):
    said = run(context, "break", "a\n\033[2Jevlock: b")
    assert said.stderr == "evlock: nobody holds a\\x0a\\x1b[2Jevlock: b\n", said


# --- Trouble ----------------------------------------------------------------------------------------------------------


def test_what_is_wrong_is_said(context):
    for words in ["status", "a"], ["list"], ["top"], ["wait", "a"], ["break", "a"]:
        said = run(context, *words, "-u", context.server.url + ".absent")
        assert said.returncode == TROUBLE and "No such file" in said.stderr, said
    for words in ["status"], ["status", "a", "b"], ["list", "a", "b"], ["top", "--every", "1ms"], ["wait", ""]:
        assert status(context, *words) == TROUBLE, words


if __name__ == "__main__":
    command.main(globals())
