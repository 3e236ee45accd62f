"""The fence: the late write of a holder that was stopped is refused, and gets through where nobody checks."""

import pathlib
import re
import signal

import harness

RECORD = "evlock-fence-record"


def counter(context):
    """The key from which fences are drawn: what is there besides the record."""
    (key,) = [key for key in context.server.command("KEYS", "*") if key != RECORD]
    return key


def fences(program):
    """Those with which the two workers held the lock."""
    holds = [re.match(r".* worker-(\d) +has the lock, with the fence (\d+)$", line) for line in program.output]
    drawn = {hold[1]: int(hold[2]) for hold in holds if hold}
    return drawn["1"], drawn["2"]


def states_of_children(program):
    """The letters by which the system tells the states of a program's processes."""
    states = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it has ended meanwhile
        if int(parent) == program.process.pid:
            states.append(state)
    return states


def await_expiry(context):
    """For a worker that was ended by force."""
    harness.wait_for(lambda: not context.server.command("EXISTS", "evlock-fence"), "the lease to expire")


def clear(context):
    """The record and the counter outlive the program."""
    context.server.command("DEL", RECORD, counter(context))


def test_refuses_the_late_write(context):
    last = 0
    for _ in range(2):
        fence = context.start()
        assert fence.end() == 0
        assert not fence.errors
        first, second = fences(fence)
        assert last < first < second, "each fence is greater than the last, also of another run"
        assert fence.output[-1] == "the late write was refused"
        assert [line for line in fence.output if f"REFUSES the write of worker-1, with the fence {first}" in line]
        assert context.server.command("HGET", RECORD, "value") == "worker-2"
        assert context.server.command("HGET", RECORD, "fence") == str(second)
        last = second
    clear(context)


def test_tells_the_stopped_worker_of_its_loss(context):
    fence = context.start()
    fence.line("stops worker-1")
    fence.line("worker-2  has the lock")
    fence.line("lets worker-1 go on")
    fence.line("worker-1  is told that its lease is lost")
    assert fence.end() == 0
    clear(context)


def test_shows_the_harm_without_the_check(context):
    fence = context.start_bare("--no-check", context.server.url)
    assert fence.end() == 1
    assert fence.output[-1] == "THE LATE WRITE GOT THROUGH"
    assert context.server.command("HGET", RECORD, "value") == "worker-1"
    clear(context)


def test_fails_where_it_cannot_be_shown(context):
    context.server.command("SET", RECORD, "no hash")
    fence = context.start()
    assert fence.end() == 1
    assert "the store failed" in fence.errors[0] and "WRONGTYPE" in fence.errors[0]
    assert context.start_bare(context.server.url + ".none").end() == 1
    await_expiry(context)
    clear(context)


def test_leaves_no_stopped_worker_behind(context):
    fence = context.start()
    fence.line("stops worker-1")
    context.server.freeze()  # so that it stays stopped
    harness.wait_for(lambda: "T" in states_of_children(fence), "a worker to be stopped")
    fence.signal(signal.SIGKILL)
    fence.end()  # when both workers have closed its output
    context.server.thaw()
    await_expiry(context)
    context.server.command("DEL", counter(context))


def test_says_that_there_is_no_server(context):
    harness.check_no_server(context, patient=False)


def test_refuses_wrong_command_lines(context):
    for arguments in [], ["a", "b"], ["--what"], ["--no-check"]:
        assert context.start_bare(*arguments).end() == 2
    assert context.start_bare("nonsense").end() == 1
    assert context.start_bare("--help").end() == 0


harness.main(globals())
