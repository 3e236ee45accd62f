"""What the tests of the command share, beside the harness of the examples: evlock on the test's server, its commands'
processes, and their states. A test file ends with command.main(globals()); its one argument is the program.
"""

import contextlib
import ctypes
import os
import pathlib
import shlex
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples"))

import harness  # noqa: E402 (it is found by the line before)

PATIENCE = harness.PATIENCE
PR_SET_CHILD_SUBREAPER = 36
wait_for = harness.wait_for

# A shell that starts a test in the background has it ignore these, and the test's programs with it.
for number in signal.SIGINT, signal.SIGQUIT:
    signal.signal(number, signal.SIG_DFL)

# A command that says who it is and goes on until it is ended. It runs no further program.
STAYS = [sys.executable, "-c", "import os, signal; print(os.getpid(), flush=True)\nwhile True: signal.pause()"]


def words(context, *arguments):
    """The words that run evlock; the server is in the environment."""
    os.environ["EVLOCK_URL"] = context.server.url
    return [*harness.wrapper(), context.program, *map(str, arguments)]


def preloaded(name, program):
    """The words that run a program in the world of one of the tests' modules, such as stops.c."""
    asan = f"{os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0"
    return ["env", f"LD_PRELOAD={os.environ['EVLOCK_TEST_' + name.upper()]}", f"ASAN_OPTIONS={asan}", *program]


def start_words(context, program):
    """Starts evlock by these words; its lines can be waited for."""
    context.programs.append(harness.Program(program))
    return context.programs[-1]


def start(context, *arguments):
    """Starts evlock; its lines can be waited for."""
    return start_words(context, words(context, *arguments))


def run(context, *arguments, **how):
    """Runs evlock to its end: its status, and what it wrote."""
    how = {"stdin": subprocess.DEVNULL, **how} if "input" not in how else how
    how = {"capture_output": True, "text": True, "timeout": PATIENCE, "check": False, **how}
    return subprocess.run(words(context, *arguments), **how)


def status(context, *arguments, **how):
    """As run(), but the exit status alone."""
    return run(context, *arguments, **how).returncode


def unheard(context, *arguments):
    """Runs evlock once for each way in which what it prints does not arrive: the statuses."""
    reading, writing = os.pipe()
    os.close(reading)
    statuses = []
    for way in ">/dev/full", ">&-", f">&{writing}":
        script = f"{shlex.join(words(context, *arguments))} {way}"
        how = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "pass_fds": [writing]}
        statuses.append(subprocess.run(["sh", "-c", script], timeout=PATIENCE, check=False, **how).returncode)
    os.close(writing)
    return statuses


def wait(program):
    """Waits for the end of a program that start() began; its status. All its lines are there then."""
    return program.wait()


def state(pid):
    """The state of a process as /proc has it: R, S, T; Z and none are the same."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return "Z"
    return text.rpartition(")")[2].split()[0]


def pending(pid):
    """Whether signals have come to a process that it has not looked at."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return any(int(line.split()[1], 16) for line in text.splitlines() if line.startswith(("SigPnd", "ShdPnd")))


def lives(pid):
    return state(pid) not in "ZX"


def gone(*pids):
    """Waits until none of these live."""
    wait_for(lambda: not any(map(lives, pids)), f"the end of {pids}")


def stopped(pid):
    wait_for(lambda: state(pid) in "Tt", f"the stop of {pid}")


def send(pid, number):
    """Sends a signal to a process that may have ended by now."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def descendants(pid):
    """All that live, also those of children that have ended: they are this process's then."""
    for child in filter(lives, children(pid)):
        yield from descendants(child)
        yield child


def children(pid):
    try:
        found = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for child in found.split()]


def held(context, name="a"):
    return context.server.command("EXISTS", name) == 1


def queued(context, name="a"):
    """Waits until somebody waits in line."""
    wait_for(lambda: context.server.command("EXISTS", f"{{{name}}}:queue") == 1, "a waiter in line")


def block(context, name="a"):
    """Another has the lock."""
    context.server.command("SET", name, "another", "PX", "600000")


def unblock(context, name="a"):
    context.server.command("DEL", name)


def forget_fences(context):
    """Counters of fences stay on the server, as they should; nothing else may."""
    for key in context.server.command("KEYS", "*:fence"):
        context.server.command("DEL", key)


class Context(harness.Context):
    def __init__(self, server_program, program):
        super().__init__(server_program, program)
        self.program = program

    def keys(self):
        forget_fences(self)
        return super().keys()

    def close(self):
        """Ends what a test that failed has left, whoever's child it was: it may hold the pipes of a program open."""
        wait_for(lambda: not self.kill(), "the end of all that the test has started")
        super().close()

    def kill(self):
        """Kills all that is found at once: by the end of one, others may end, or become ours. Returns those."""
        found = [pid for pid in descendants(os.getpid()) if pid != self.server.process.pid]
        for pid in found:
            send(pid, signal.SIGKILL)
        return found


def main(names):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for variable in [name for name in os.environ if name.startswith("EVLOCK_") and not name.startswith("EVLOCK_TEST")]:
        del os.environ[variable]
    harness.Context = Context
    harness.main(names)
