"""evlock run as the first process of a container: it reaps orphans, and signals reach its command."""

import os
import pathlib
import signal
import subprocess
import sys

import command
from test_signals import SAYS

NAMESPACE = ["unshare", "--fork", "--pid", "--mount-proc"]


def start(context, *arguments):
    program = command.harness.Program([*NAMESPACE, *command.words(context, *arguments)])
    context.programs.append(program)
    return program


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
    program = command.harness.Program(["unshare", "--fork", "--pid", *words])
    context.programs.append(program)
    program.line("up")
    command.wait_for(lambda: any("without /proc; a is kept" in line for line in program.errors), "words")
    assert command.held(context)
    pathlib.Path(end).write_text("end\n", encoding="utf-8")
    assert command.wait(program) == 4
    assert not command.held(context)


def permitted():
    return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    if not permitted() or not pathlib.Path("/proc/self/task").exists():
        print("skipped: namespaces of processes are not permitted here (unshare --fork --pid --mount-proc)")
        sys.exit(77)
    command.main(globals())
