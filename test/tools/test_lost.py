"""evlock run: what becomes of the command when its lock is at risk or lost."""

import os
import signal
import sys
import time

import command
from command import start
from test_signals import FAMILY, SAYS, family

# Ignores every signal that it can.
IGNORES = [sys.executable, "-c", """
import os, signal
for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
    signal.signal(number, signal.SIG_IGN)
print(os.getpid(), flush=True)
while True:
    signal.pause()
"""]

# Leaves a command on a loaded machine the time to say that it was asked to end.
PATIENT = ["--ttl", "3s", "-k", "1400ms"]

# Says that it was warned, and what its descriptor says, to its end. The request to end comes beside the last word.
READS = [sys.executable, "-c", """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'warned\\n'))
print('ready', flush=True)
for line in open(int(os.environ['EVLOCK_FD'])):
    print(line, end='', flush=True)
"""]


def is_asked_to_end(context, *words, by="SIGTERM"):
    """A command that says that it is ready, and what it is asked by when the lock "a" is gone."""
    program = start(context, "run", *PATIENT, *words)
    program.line("")
    context.server.command("DEL", "a")
    program.line(by)
    assert command.wait(program) == 124
    return program


def test_asks_the_command_to_end(context):
    program = is_asked_to_end(context, "a", *SAYS)
    assert "lost a: not owned" in program.errors[0], program.errors


def test_asks_all_that_the_command_started(context):
    """The last is a child's child's child, in another session."""
    is_asked_to_end(context, "a", "sh", "-c", 'setsid sh -c \'"$@" & wait\' sh "$@" & wait', "sh", *SAYS)


def test_does_not_wait_for_the_rest_of_at_least(context):
    is_asked_to_end(context, "--at-least", "1h", "a", *SAYS)


def test_asks_by_the_signal_that_is_said(context):
    is_asked_to_end(context, "-s", "USR2", "a", *SAYS, by="SIGUSR2")


def test_kills_what_does_not_end(context):
    program = start(context, "run", "--ttl", "1s", "-k", "100ms", "a", *IGNORES)
    pid = int(program.line(""))
    context.server.command("DEL", "a")
    assert command.wait(program) == 124
    assert not command.lives(pid)


def test_ends_what_was_to_be_left_behind(context):
    """--leave is of a command that ends by itself."""
    script = '"$@" & wait'
    program = start(context, "run", "--leave", "--ttl", "1s", "-k", "100ms", "a", "sh", "-c", script, "sh", *IGNORES)
    pid = int(program.line(""))
    context.server.command("DEL", "a")
    assert command.wait(program) == 124
    assert not command.lives(pid)


def test_warns_before_a_long_grace_begins(context):
    program = start(context, "run", "--ttl", "12s", "-k", "5700ms", "a", *READS)
    program.line("ready")
    context.server.freeze()
    program.line("at risk")
    program.line("lost")
    context.server.thaw()
    assert command.wait(program) == 124


def test_does_not_wait_for_a_server_that_is_gone(context):
    """Its lease is not over on the server, if that comes back; a release would be told to nobody."""
    server = command.harness.Server(context.server.process.args[0])
    try:
        program = start(context, "run", "-u", server.url, "--ttl", "8s", "-k", "3800ms", "a", *SAYS)
        program.line("")
        gone = time.monotonic()
        server.process.kill()
        program.line("SIGTERM")
        assert command.wait(program) == 124
        assert time.monotonic() - gone < 8
    finally:
        server.end()


def test_ends_all_that_the_command_started(context):
    program = start(context, "run", "--ttl", "1s", "a", *FAMILY)
    pids = family(program)
    context.server.command("DEL", "a")
    assert command.wait(program) == 124
    assert not any(map(command.lives, pids))


def test_does_not_touch_the_next_holder(context):
    program = start(context, "run", *PATIENT, "a", *SAYS)
    program.line("")
    command.block(context)
    assert command.wait(program) == 124
    assert context.server.command("GET", "a") == "another"
    command.unblock(context)


def test_is_dead_by_the_deadline_when_the_server_dies(context):
    server = command.harness.Server(os.environ.get("EVLOCK_TEST_SERVER", "redis-server"))
    try:
        program = start(context, "run", "-u", server.url, "--ttl", "4s", "-k", "1s", "a", *IGNORES)
        pid = int(program.line(""))
        asked = start(context, "run", "-u", server.url, "--ttl", "4s", "-k", "1500ms", "b", *SAYS)
        asked.line("")
        server.process.kill()
        begin = time.monotonic()
        command.gone(pid)
        took = time.monotonic() - begin
        assert command.wait(program) == 124
        # The deadline is 4 s after the last renewal, which was before the server's end. A loaded machine may be late.
        assert took < 5, f"the command lived for {took:.1f} s"
        assert took > 1, "it was ended before the lease was in danger"
        asked.line("SIGTERM")
        assert command.wait(asked) == 124
    finally:
        server.end()


def test_warns_of_a_risk(context):
    program = start(context, "run", "--ttl", "2s", "--warn-signal", "USR1", "a", *READS)
    program.line("ready")
    context.server.freeze()
    command.wait_for(lambda: {"at risk", "warned"} <= set(program.output), "both warnings")
    command.wait_for(lambda: any("a: at risk" in line for line in program.errors), "evlock's own words")
    context.server.thaw()
    context.server.command("DEL", "a")
    program.line("lost")
    assert command.wait(program) == 124


def test_gets_over_a_risk(context):
    program = start(context, "run", "--ttl", "3s", "--warn-signal", "USR1", "a", *SAYS)
    program.line("")
    context.server.freeze()
    program.line("SIGUSR1")
    context.server.thaw()
    renewals = context.server.attempts()
    command.wait_for(lambda: context.server.attempts() > renewals, "a renewal")
    program.signal(signal.SIGTERM)
    assert command.wait(program) == 3


if __name__ == "__main__":
    command.main(globals())
