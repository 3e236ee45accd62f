"""evlock run as the first process of a container: it reaps orphans, and signals reach its command."""

import os
import pathlib
import shlex
import signal
import subprocess
import sys

import command
from test_signals import FAMILY, SAYS, family
from test_supervisor import MAY_NOT_KILL, STAYS_AS_NOBODY

NAMESPACE = ["unshare", "--fork", "--pid", "--mount-proc"]

# Says when it is asked to end, and ends.
SAYS_END = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print("up", flush=True)
signal.sigwait([signal.SIGTERM])
print("asked", flush=True)
"""

# The second process of a namespace has a child when it runs evlock, in a namespace that keeps this /proc.
BESIDE_A_PARENT = """
sh -c 'sleep 1000 & wait' &
until [ "$child" ]; do read child </proc/2/task/2/children; done
unshare --fork --pid "$@"
"""

# In a namespace where numbers begin anew, and so grow: a child that evlock finds, and evlock. Goes on behind evlock's end.
BESIDE_A_CHILD = """
sh -c 'sleep 1000 >/dev/null 2>&1 & exec "$@"' sh "$@"
echo ended $?
read line
"""


def start(context, *arguments):
    return command.start_words(context, [*NAMESPACE, *command.words(context, *arguments)])


def test_exits_as_the_command_does(context):
    program = start(context, "run", "a", "sh", "-c", "test $(cut -d ' ' -f 4 /proc/$PPID/stat) = 1 && exit 5")
    assert command.wait(program) == 5


def test_reaps_orphans(context):
    # Orphans that end at once, and then the number of those that nobody has reaped.
    script = "for i in 1 2 3 4 5; do sh -c 'true & exit'; done; i=0; while :; do n=$(grep -ls 'State:.Z' " \
             "/proc/[0-9]*/status | wc -l); [ $n = 0 ] && echo none && exit; i=$((i + 1)); [ $i = 500 ] && exit 9; " \
             "sleep 0.02; done"
    program = start(context, "run", "a", "sh", "-c", script)
    assert command.wait(program) == 0
    assert "none" in program.output


def test_passes_signals_on(context):
    program = start(context, "run", "a", *SAYS)
    program.line("")
    evlock, = command.children(program.process.pid)
    os.kill(evlock, signal.SIGTERM)
    program.line("SIGTERM")
    assert command.wait(program) == 3


def test_is_lost(context):
    program = start(context, "run", "--ttl", "1s", "a", *SAYS)
    program.line("")
    context.server.command("DEL", "a")
    assert command.wait(program) == 124


def test_ends_the_command_where_proc_is_of_another_namespace(context):
    """The numbers in that /proc are of other processes: none of them may be signalled, nor waited for."""
    words = ["unshare", "--fork", "--pid", *command.words(context, "run", "--ttl", "60s", "--at-most", "1s", "-k", "300ms")]
    result = subprocess.run([*words, "a", "sleep", "1000"], timeout=command.PATIENCE / 2, check=False)
    assert result.returncode == 124


def test_waits_for_what_it_cannot_find(context):
    """In another's /proc, what has left the command's group is seen to end, and no more."""
    end = os.path.join(context.server.folder, "end")
    os.mkfifo(end)
    daemon = f"setsid sh -c 'echo up; exec >&- 2>&-; read line <{end}'"
    words = command.words(context, "run", "-k", "100ms", "a", "--", "sh", "-c", f"echo $({daemon} &); exit 4")
    program = command.start_words(context, ["unshare", "--fork", "--pid", *words])
    program.line("up")
    command.wait_for(lambda: any("without /proc; a is kept" in line for line in program.errors), "words")
    assert command.held(context)
    pathlib.Path(end).write_text("end\n", encoding="utf-8")
    assert command.wait(program) == 4
    assert not command.held(context)


def test_asks_all_where_proc_knows_another_by_the_same_number(context):
    """The command's parent is number 2 in its namespace, and in that /proc a process that has a child."""
    leaves = f"{shlex.join([sys.executable, '-c', SAYS_END])} & read line"
    words = command.words(context, "run", "-k", "15s", "--ttl", "60s", "a", "sh", "-c", leaves)
    program = command.start_words(context, [*NAMESPACE, "sh", "-c", BESIDE_A_PARENT, "sh", *words])
    program.line("up")
    program.say("end")
    program.line("asked")
    assert command.wait(program) == 0


def test_ends_what_began_in_one_tick_with_its_parent_and_nothing_older(context):
    """The parent is killed, and its orphan is told from a child that evlock found by their numbers alone."""
    words = command.preloaded("ticks", command.words(context, "run", "a", *FAMILY))
    program = command.start_words(context, [*NAMESPACE, "sh", "-c", BESIDE_A_CHILD, "sh", *words])
    family(program)
    shell, = command.children(program.process.pid)
    evlock, = command.children(shell)
    helper, supervisor = command.children(evlock)
    pids = list(command.descendants(supervisor))
    assert len(pids) == 3, pids
    os.kill(supervisor, signal.SIGKILL)
    program.line("ended 125")
    assert not any(map(command.lives, pids)), "what the command has started lives on"
    assert command.lives(helper), "it is none of the command's"
    program.say("end")
    assert command.wait(program) == 0


def test_keeps_the_lock_where_it_may_not_end_what_proc_does_not_show(context):
    """The parent is killed, and its command, in a group of its own or in evlock's, is another user's by now."""
    if os.geteuid() != 0:
        print("# skipped: it needs the rights of root")
        return
    for options in [], ["--foreground"]:
        words = command.words(context, "run", "--ttl", "3s", *options, "a", *STAYS_AS_NOBODY)
        program = command.start_words(context, ["unshare", "--fork", "--pid", "setsid", *MAY_NOT_KILL, *words])
        program.line("")
        evlock, = command.children(program.process.pid)
        supervisor, = command.children(evlock)
        pid, = command.children(supervisor)
        os.kill(supervisor, signal.SIGKILL)
        command.wait_for(lambda: program.process.poll() or any("cannot end" in line for line in program.errors), "words")
        renewals = context.server.attempts()
        command.wait_for(lambda: program.process.poll() or context.server.attempts() >= renewals + 2, "renewals")
        assert command.lives(pid) and command.held(context), program.errors
        os.kill(pid, signal.SIGKILL)
        assert command.wait(program) == 125
        assert not command.held(context)


def permitted():
    return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    if not permitted() or not pathlib.Path("/proc/self/task").exists():
        print("skipped: namespaces of processes are not permitted here (unshare --fork --pid --mount-proc)")
        sys.exit(77)
    command.main(globals())
