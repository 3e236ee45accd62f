"""evlock elect: one of many runs the command, and the next one when it is gone."""

import signal
import sys

import command
from command import start
from test_signals import SAYS


def test_has_one_leader_at_a_time(context):
    first = start(context, "elect", "a", *SAYS)
    first.line("")
    second = start(context, "elect", "a", *SAYS)
    command.queued(context)
    assert not second.output
    first.signal(signal.SIGTERM)
    assert command.wait(first) == 3
    second.line("")
    second.signal(signal.SIGTERM)
    assert command.wait(second) == 3


def test_stands_again_when_it_is_deposed(context):
    program = start(context, "elect", "--ttl", "3s", "-k", "1400ms", "a", *SAYS)
    pid = int(program.line(""))
    context.server.command("DEL", "a")
    program.line("SIGTERM")
    again = int(program.line(""))
    assert again != pid and not command.lives(pid)
    program.signal(signal.SIGTERM)
    assert command.wait(program) == 3


def test_stands_again_after_a_term(context):
    program = start(context, "elect", "--at-most", "6s", "-k", "3500ms", "a", *SAYS)
    for _ in range(2):
        program.line("SIGTERM")
    program.line("")
    program.signal(signal.SIGINT)
    program.line("SIGINT")
    program.line("SIGTERM")
    assert command.wait(program) == 124, "a signal to end ends it, though its term was over"


def test_stands_again_when_the_command_ends(context):
    program = start(context, "elect", "--again", "a", "sh", "-c", "echo ran; exit 5")
    for _ in range(2):
        program.line("ran")
    command.wait_for(lambda: not command.held(context), "the end of a term")
    program.signal(signal.SIGTERM)
    assert command.wait(program) in (128 + signal.SIGTERM, 5)


def test_rests_before_it_stands_again(context):
    """A command that ends at once does not keep the server busy."""
    program = start(context, "elect", "--again", "a", "sh", "-c", "cut -d ' ' -f 1 /proc/uptime")
    first = float(program.line(""))
    command.wait_for(lambda: len(program.output) > 1, "the next term")
    assert float(program.output[1]) - first >= 0.99, program.output
    program.signal(signal.SIGTERM)
    command.wait(program)


# Reads its files anew when HUP comes, and ends when USR1 does.
RELOADS = [sys.executable, "-c", """
import signal, sys
heard = [signal.SIGHUP, signal.SIGUSR1]
signal.pthread_sigmask(signal.SIG_BLOCK, heard)
print('ready', flush=True)
while signal.sigwait(heard) == signal.SIGHUP:
    print('reloaded', flush=True)
sys.exit(5)
"""]


def test_stands_again_though_the_command_was_reloaded(context):
    program = start(context, "elect", "--again", "a", *RELOADS)
    for _ in range(2):
        program.line("ready")
        program.signal(signal.SIGHUP)
        program.line("reloaded")
        program.signal(signal.SIGUSR1)
    program.line("ready")
    program.signal(signal.SIGTERM)
    assert command.wait(program) == 128 + signal.SIGTERM


def test_ends_with_a_command_that_a_hangup_ends(context):
    program = start(context, "elect", "--again", "a", *command.STAYS)
    program.line("")
    program.signal(signal.SIGHUP)
    assert command.wait(program) == 128 + signal.SIGHUP


def test_ends_as_its_command(context):
    assert command.status(context, "elect", "a", "--", "sh", "-c", "exit 6") == 6


if __name__ == "__main__":
    command.main(globals())
