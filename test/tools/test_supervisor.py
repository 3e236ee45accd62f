"""evlock run: the parent of its command, by which nothing of the command lives when another holds the lock."""

import os
import pathlib
import random
import resource
import shlex
import signal
import struct
import subprocess
import sys
import time

import command
from command import start
from test_signals import FAMILY, SAYS, family

PR_CAPBSET_DROP, CAP_KILL = 24, 5
NOBODY = 65534

# Runs a program without the right to signal other users.
MAY_NOT_KILL = [sys.executable, "-c", f"""
import ctypes, os, sys
ctypes.CDLL(None).prctl({PR_CAPBSET_DROP}, {CAP_KILL}, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""]

# Becomes another user, and stays.
STAYS_AS_NOBODY = [sys.executable, "-c", f"""
import os, signal
os.setuid({NOBODY})
print(os.getpid(), flush=True)
while True:
    signal.pause()
"""]

SAYS_THAT_IT_GOES_ON = [sys.executable, "-c", """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCONT])
print(os.getpid(), flush=True)
signal.sigwait([signal.SIGCONT])
print("on", flush=True)
signal.pause()
"""]


class Lives:
    """When those that ran alive.c under a lock began and ended."""

    def __init__(self, context, name):
        self.path = os.path.join(context.server.folder, f"lives-{name}")
        with open(self.path, "wb") as file:
            file.truncate(16 * 1000)

    def words(self, milliseconds):
        return [os.environ["EVLOCK_TEST_ALIVE"], self.path, str(milliseconds)]

    def records(self):
        records = list(struct.iter_unpack("qq", pathlib.Path(self.path).read_bytes()))
        return records[1:records[0][0] + 1]


def parent(program):
    """The command's parent."""
    return command.wait_for(lambda: command.children(program.process.pid), "a child of evlock")[0]


def stop(pid, whom):
    """Stops evlock, and for "all" what it has started by now."""
    os.kill(pid, signal.SIGSTOP)
    for other in list(command.descendants(pid)) if whom == "all" else []:
        command.send(other, signal.SIGSTOP)


def go_on(pid):
    """Evlock and the command's parent go on. The command does not, where it is stopped: what was stopped behind its look
    at the deadline cannot be held back, and that parent has to end it."""
    for other in [*command.children(pid), pid]:
        command.send(other, signal.SIGCONT)


def next_holder(context, name="a"):
    """Another's command runs under the lock, to its end: when it began."""
    others = Lives(context, name + "-others")
    assert command.status(context, "run", name, *others.words(100)) == 0
    return others.records()[0][0]


def check_was_dead(holder, mine, moment):
    """When evlock has ended, what it ran was dead at that moment."""
    assert command.wait(holder) == 124
    _, last = mine.records()[0]
    assert last < moment, f"it lived for {last - moment} us beside the next one"


def test_never_begins_its_command_behind_its_deadline(context):
    """evlock is stopped a moment after the grant, until another has the lock. If it has not heard of its grant by then, it
    is too late, and evlock waits for the lock once more: its command begins behind the other's end."""
    for whom in "evlock", "all":
        rounds = []
        for number in range(8):
            name = f"{whom}{number}"
            mine, others = Lives(context, name), Lives(context, name + "-others")
            holder = start(context, "run", "--ttl", "1s", name, *mine.words(5000))
            command.wait_for(lambda name=name: command.held(context, name), "the lock")
            time.sleep(random.uniform(0, 0.006))
            stop(holder.process.pid, whom)
            rounds.append((holder, start(context, "run", name, *others.words(300)), mine, others))
        for holder, other, mine, others in rounds:
            command.wait_for(others.records, "the next holder")
            go_on(holder.process.pid)
            command.wait(holder)
            assert command.wait(other) == 0
            (first, last), = others.records()
            late = [life for life in mine.records() if first <= life[0] <= last]
            assert not late, f"it began beside the next holder's: {late}, {first} to {last}"


def test_looks_at_the_deadline_just_before_it_becomes_the_command(context):
    """All three stop while the command's process is not yet the command; that goes on first."""
    mine = Lives(context, "mine")
    words = command.words(context, "run", "--ttl", "2s", "a", *mine.words(60000))
    holder = command.start_words(context, command.preloaded("stops", words))
    supervisor = parent(holder)
    pid, = command.wait_for(lambda: command.children(supervisor), "the command's process")
    command.stopped(pid)
    stop(holder.process.pid, "evlock")
    command.stopped(holder.process.pid)
    os.kill(supervisor, signal.SIGSTOP)
    assert command.status(context, "run", "a", "true") == 0
    os.kill(pid, signal.SIGCONT)
    command.wait_for(lambda: not command.lives(pid) or mine.records(), "the end of the command's process")
    go_on(holder.process.pid)
    assert command.wait(holder) == 124
    assert not mine.records(), "it became the command without the lock"


def test_is_dead_when_the_next_holder_begins(context):
    """evlock is stopped while its command runs, beside many processes."""
    crowd = subprocess.Popen(["sh", "-c", "for i in $(seq 300); do sleep 1000 & done; wait"])
    mine = Lives(context, "mine")
    holder = start(context, "run", "--ttl", "4s", "a", *mine.words(60000))
    command.wait_for(mine.records, "the command")
    stop(holder.process.pid, "evlock")
    moment = next_holder(context)
    go_on(holder.process.pid)
    check_was_dead(holder, mine, moment)
    for pid in [*command.descendants(crowd.pid), crowd.pid]:
        os.kill(pid, signal.SIGKILL)
    crowd.wait()


def test_is_dead_by_the_deadline_though_it_may_take_longer_to_end(context):
    """The command ends near the deadline, while evlock is stopped, and leaves behind what heeds no TERM."""
    mine = Lives(context, "mine")
    leaves = f"trap '' TERM; setsid {shlex.join(mine.words(60000))} & read line"
    holder = start(context, "run", "--ttl", "4s", "-k", "1900ms", "a", "sh", "-c", leaves)
    command.wait_for(mine.records, "the command")
    stop(holder.process.pid, "evlock")
    command.wait_for(lambda: context.server.command("PTTL", "a") <= 1000, "the last second")
    holder.say("end")
    moment = next_holder(context)
    go_on(holder.process.pid)
    check_was_dead(holder, mine, moment)


def test_says_that_it_was_ended_in_time_though_the_lock_is_held(context):
    """evlock is stopped when it has renewed its lease, before the command's parent knows of that."""
    program = start(context, "run", "--ttl", "3s", "a", *SAYS)
    pid = int(program.line(""))
    renewals = context.server.attempts()
    command.wait_for(lambda: context.server.attempts() > renewals, "a renewal")
    stop(program.process.pid, "evlock")
    command.gone(pid)
    program.signal(signal.SIGCONT)
    assert command.wait(program) == 124


def all_stopped(context, name):
    """Under a lock of this name, a command that was stopped, with evlock, its parent, and many outside of its group."""
    mine = Lives(context, name)
    crowd = f"for i in $(seq 300); do sleep 1000 & done; exec {shlex.join(mine.words(60000))}"
    heeds_no_term = f"trap '' TERM; setsid sh -c {shlex.quote(crowd)} & wait"
    holder = start(context, "run", "--ttl", "2s", name, "sh", "-c", heeds_no_term)
    command.wait_for(mine.records, "the command")
    supervisor = parent(holder)
    pid = command.children(supervisor)[0]
    for other in holder.process.pid, supervisor, *command.descendants(supervisor):
        os.kill(other, signal.SIGSTOP)
        command.stopped(other)
    return holder, supervisor, pid, mine


def test_lets_nothing_go_on_behind_its_deadline(context):
    """evlock goes on behind the deadline. Its order to end comes before the parent is awake, or its command has ended."""
    for name in "ordered", "ended":
        holder, supervisor, pid, mine = all_stopped(context, name)
        for other in holder.process.pid, supervisor:
            os.sched_setaffinity(other, [min(os.sched_getaffinity(0))])
        os.sched_setscheduler(supervisor, os.SCHED_IDLE, os.sched_param(0))
        moment = next_holder(context, name)
        if name == "ended":
            os.kill(pid, signal.SIGKILL)
        os.kill(holder.process.pid, signal.SIGCONT)
        check_was_dead(holder, mine, moment)


def processor_time(context):
    """What a run costs where others disturb it least, in seconds."""
    def one():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert command.status(context, "run", "a", "true") == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return min(one() for _ in range(20))


def test_costs_no_more_beside_many_processes(context):
    alone = processor_time(context)
    crowd = subprocess.Popen(["sh", "-c", "for i in $(seq 1000); do sleep 1000 & done; echo; wait"],
                             stdout=subprocess.PIPE)
    crowd.stdout.read(1)
    beside = processor_time(context)
    for pid in [*command.descendants(crowd.pid), crowd.pid]:
        os.kill(pid, signal.SIGKILL)
    crowd.wait()
    assert beside < 2 * alone, f"{beside:.3f} s, and {alone:.3f} s alone"


def test_spares_all_that_are_not_its_commands(context):
    """A shell becomes evlock: it leaves it forty children, one of which makes a daemon while the command runs."""
    words = " ".join(command.words(context, "run", "--ttl", "2s", "a", "sh", "-c", "'read line; exit 4'"))
    late = "sh -c 'read go <$0/go; setsid sleep 1000 >/dev/null 2>&1 & echo $! >$0/made; exit' \"$0\""
    script = f"for i in $(seq 40); do sleep 1000 >/dev/null 2>&1 & echo $!; done; {late} & exec {words} <$0/end"
    folder = pathlib.Path(context.server.folder)
    for name in "go", "made", "end":
        os.mkfifo(folder / name)
    shell = subprocess.Popen(["sh", "-c", script, str(folder)], stdout=subprocess.PIPE, text=True)
    with open(folder / "end", "w", encoding="utf-8") as end:
        helpers = [int(shell.stdout.readline()) for _ in range(40)]
        command.wait_for(lambda: command.held(context), "the lock")
        (folder / "go").write_text("go\n", encoding="utf-8")
        helpers.append(int((folder / "made").read_text(encoding="utf-8")))
        end.write("end\n")
    assert shell.wait(timeout=command.PATIENCE) == 4
    assert all(map(command.lives, helpers)), "it ended what was not its own"
    for pid in helpers:
        os.kill(pid, signal.SIGKILL)


def test_takes_all_of_the_command_along_when_it_is_killed(context):
    program = start(context, "run", "a", *FAMILY)
    pids = family(program)
    program.signal(signal.SIGKILL)
    command.gone(*pids)
    assert command.wait(program) == -signal.SIGKILL
    context.server.command("DEL", "a")


def test_ends_the_command_when_its_parent_is_killed(context):
    words = shlex.join(command.words(context, "run", "a", *FAMILY))
    program = command.start_words(context, ["sh", "-c", f"sleep 1000 >/dev/null 2>&1 & echo $!; exec {words}"])
    helper, pids = int(program.line("")), family(program)
    supervisor, = [pid for pid in command.children(program.process.pid) if pid != helper]
    os.kill(supervisor, signal.SIGKILL)
    assert command.wait(program) == 125
    assert not any(map(command.lives, pids)) and not command.held(context)
    assert any("parent of the command was killed" in line for line in program.errors), program.errors
    assert command.lives(helper), "it is none of the command's"
    os.kill(helper, signal.SIGKILL)


def test_wakes_the_parent_when_it_is_stopped(context):
    program = start(context, "run", "--ttl", "2s", "a", *SAYS)
    program.line("")
    os.kill(parent(program), signal.SIGSTOP)
    program.signal(signal.SIGUSR1)
    program.line("SIGUSR1")
    os.kill(parent(program), signal.SIGSTOP)
    context.server.command("DEL", "a")
    program.line("SIGTERM")
    assert command.wait(program) == 124


def test_hears_the_end_of_a_parent_that_it_has_woken(context):
    """The parent was stopped, and goes on and ends before evlock has seen to that."""
    program = command.start_words(context, command.preloaded("ends", command.words(context, "run", "a", *SAYS)))
    pid = int(program.line(""))
    os.kill(parent(program), signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)
    assert command.wait(program) == 128 + signal.SIGKILL


def test_hears_the_end_of_a_command_that_was_stopped(context):
    """It goes on and ends before its parent has seen to that."""
    words = command.words(context, "run", "a", *SAYS_THAT_IT_GOES_ON)
    program = command.start_words(context, command.preloaded("ends", words))
    pid = int(program.line(""))
    os.kill(pid, signal.SIGSTOP)
    program.line("on")
    os.kill(pid, signal.SIGKILL)
    assert command.wait(program) == 128 + signal.SIGKILL


def test_its_parent_holds_nothing_of_others(context):
    """Neither evlock's connections, nor its caller's files, nor the file system in which it was started."""
    program = start(context, "run", "a", *SAYS)
    program.line("")
    folder = f"/proc/{parent(program)}"
    command.wait_for(lambda: os.readlink(f"{folder}/cwd") == "/", "a parent that is nowhere")
    assert sorted(os.listdir(f"{folder}/fd")) == ["0", "1", "2"]
    program.signal(signal.SIGTERM)
    assert command.wait(program) == 3


def test_the_command_does_not_outlive_all_its_parents(context):
    """Its parent is killed before it has heard that evlock was."""
    program = start(context, "run", "a", *SAYS)
    pid = int(program.line(""))
    supervisor = parent(program)
    os.kill(supervisor, signal.SIGSTOP)
    program.process.kill()
    program.process.wait()
    os.kill(supervisor, signal.SIGKILL)
    command.wait_for(lambda: not command.lives(pid), "the end of the command")
    context.server.command("DEL", "a")


def test_leaves_no_parent_behind(context):
    program = start(context, "run", "a", *SAYS)
    program.line("")
    supervisor = parent(program)
    program.signal(signal.SIGTERM)
    assert command.wait(program) == 3
    assert not command.lives(supervisor)


def test_gets_what_the_command_sends_to_its_parent(context):
    program = start(context, "run", "a", "sh", "-c", "trap 'echo got; exit 5' USR1; kill -USR1 $PPID; while :; do :; done")
    program.line("got")
    assert command.wait(program) == 5


def test_keeps_the_lock_while_it_may_not_end_the_command(context):
    """evlock has no right to send signals to other users, and its command becomes one."""
    if os.geteuid() != 0:
        print("# skipped: it needs the rights of root")
        return
    words = command.words(context, "run", "--ttl", "3s", "--at-most", "1s", "-k", "200ms", "a", *STAYS_AS_NOBODY)
    program = command.start_words(context, [*MAY_NOT_KILL, *words])
    pid = int(program.line(""))
    command.wait_for(lambda: any(f"cannot end process {pid}" in line for line in program.errors), "words")
    renewals = context.server.attempts()
    command.wait_for(lambda: context.server.attempts() >= renewals + 4, "renewals")
    assert command.status(context, "run", "-n", "a", "true") == 1, "it has the lock beside a command that lives"
    os.kill(pid, signal.SIGKILL)
    assert command.wait(program) == 124
    assert not command.held(context)


def test_says_what_it_cannot_end_in_the_place_of_the_parent(context):
    """The parent is killed, and its command is another user's by now."""
    if os.geteuid() != 0:
        print("# skipped: it needs the rights of root")
        return
    words = command.words(context, "run", "--ttl", "3s", "a", *STAYS_AS_NOBODY)
    program = command.start_words(context, [*MAY_NOT_KILL, *words])
    pid = int(program.line(""))
    os.kill(parent(program), signal.SIGKILL)
    command.wait_for(lambda: any(f"cannot end process {pid}" in line for line in program.errors), "words")
    renewals = context.server.attempts()
    command.wait_for(lambda: context.server.attempts() >= renewals + 4, "renewals")
    os.kill(pid, signal.SIGKILL)
    assert command.wait(program) == 125
    assert sum("cannot end" in line for line in program.errors) == 1, program.errors
    assert not command.held(context)


if __name__ == "__main__":
    command.main(globals())
