"""evlock run: signals that it passes on, that end its wait, that stop it, and that end it before its command."""

import os
import signal
import subprocess
import sys

import command
from command import start

# Says each signal that it gets, and ends with 3 by SIGTERM. It waits for them blocked: one that came before the wait
# would be waited for in vain otherwise.
SAYS = [sys.executable, "-c", """
import os, signal, sys
heard = [signal.Signals["SIG" + name] for name in "TERM INT HUP QUIT USR1 USR2 WINCH".split()]
signal.pthread_sigmask(signal.SIG_BLOCK, heard)
print(os.getpid(), flush=True)
while True:
    number = signal.sigwait(heard)
    print(signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM:
        sys.exit(3)
"""]

# A command in two groups, with an orphan that has left both; it says who they are.
FAMILY = ["sh", "-c", "sleep 1000 & echo $!; setsid sh -c 'sleep 1000 & echo $!; exit'; echo $$; wait"]


def family(program):
    return [int(program.line("")) for _ in range(3)]


def test_passes_signals_on(context):
    program = start(context, "run", "a", *SAYS)
    program.line("")
    for name in "INT", "HUP", "QUIT", "USR1", "USR2", "WINCH", "TERM":
        program.signal(signal.Signals["SIG" + name])
        program.line("SIG" + name)
    assert command.wait(program) == 3


def test_ends_its_wait_by_a_signal(context):
    command.block(context)
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1:
        program = start(context, "run", "a", "true")
        command.queued(context)
        program.signal(number)
        assert command.wait(program) == 128 + number
        assert context.server.command("EXISTS", "{a}:queue") == 0, "it is still in line"
    command.unblock(context)


def test_leaves_ignored_signals_ignored(context):
    shows = ["sh", "-c", "kill -HUP $PPID; grep SigIgn /proc/self/status"]
    how = {"capture_output": True, "text": True, "timeout": command.PATIENCE, "stdin": subprocess.DEVNULL}
    alone = subprocess.run(["nohup", "sh", "-c", shows[-1].partition("; ")[2]], check=True, **how)
    under = subprocess.run(["nohup", *command.words(context, "run", "a", *shows)], check=False, **how)
    assert (under.returncode, under.stdout) == (0, alone.stdout), (under, alone)


def test_hears_of_its_command_though_it_was_started_with_all_signals_blocked(context):
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        assert command.status(context, "run", "a", "sh", "-c", "exit 5") == 5
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert not command.held(context)


def test_stops_and_goes_on_with_its_command(context):
    program = start(context, "run", "a", *SAYS)
    pid = int(program.line(""))
    program.signal(signal.SIGTSTP)
    command.stopped(pid)
    command.stopped(program.process.pid)
    program.signal(signal.SIGCONT)
    program.signal(signal.SIGUSR1)
    program.line("SIGUSR1")
    program.signal(signal.SIGTERM)
    assert command.wait(program) == 3


def test_is_dead_by_the_deadline_though_evlock_is_stopped(context):
    program = start(context, "run", "--ttl", "1s", "a", *FAMILY)
    pids = family(program)
    program.signal(signal.SIGSTOP)
    command.gone(*pids)
    command.stopped(program.process.pid)
    program.signal(signal.SIGCONT)
    assert command.wait(program) == 124


def test_does_not_go_on_when_the_lock_is_gone(context):
    """As above, by the signal that evlock itself is stopped by: its command is stopped first."""
    program = start(context, "run", "--ttl", "1s", "a", *SAYS)
    pid = int(program.line(""))
    program.signal(signal.SIGTSTP)
    command.stopped(pid)
    command.gone(pid)
    program.signal(signal.SIGCONT)
    assert command.wait(program) == 124
    assert not any("SIG" in line for line in program.output), program.output


def test_keeps_the_lock_of_a_stopped_command(context):
    program = start(context, "run", "--ttl", "3s", "-k", "1400ms", "a", *SAYS)
    pid = int(program.line(""))
    os.kill(pid, signal.SIGSTOP)
    command.stopped(pid)
    renewals = context.server.attempts()
    command.wait_for(lambda: context.server.attempts() >= renewals + 2, "renewals")
    assert command.held(context)
    context.server.command("DEL", "a")
    program.line("SIGTERM")
    assert command.wait(program) == 124


def test_takes_its_command_along_when_it_is_killed(context):
    program = start(context, "run", "a", "sh", "-c", "sleep 1000 & echo $!; echo $$; wait")
    pids = [int(program.line("")) for _ in range(2)]
    program.signal(signal.SIGKILL)
    command.gone(*pids)
    assert command.wait(program) == -signal.SIGKILL
    context.server.command("DEL", "a")


if __name__ == "__main__":
    command.main(globals())
