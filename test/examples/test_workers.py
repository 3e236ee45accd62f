"""The workers: each line of their timeline, their summary, and every reason to end with a failure."""

import os
import re
import signal

import harness

LINE = re.compile(r" *(\d+\.\d{3}) (worker-\d+): (.*)")
LOCK = "evlock-workers"


def timeline(program):
    """The lines of the timeline as (worker, text), in the order in which they were written."""
    return [match.groups()[1:] for match in map(LINE.fullmatch, program.output) if match]


def seen(program, text):
    return sum(line.endswith(": " + text) for line in program.output)


def by_worker(program):
    lines = {}
    for worker, text in timeline(program):
        lines.setdefault(worker, []).append(text)
    return lines


def check_turns(worker, lines):
    """Checks the order of one worker's lines; counts its acquisitions and its releases that failed."""
    text = "\n".join(line for line in lines if line != "told to stop")
    turn = re.compile(
        r"acquiring lock…\n"
        r"\[identifier \S{36}\] waited \d+\.\d{3} seconds\n"
        rf"held {worker} got\n"
        r"(?:"
        r"(?:doing sth…\n){10}release lock!\nsuccess to release lock\n"
        r"|lost the lock: .*\nlock timeout!\nrelease lock!\nfail to release lock\n"
        r"|(?:doing sth…\n)+(?:(?:lost the lock: .*|fail to update ttl for lock!)\n)+"
        r"release lock!\nfail to release lock\n"
        r")"
        rf"not-held {worker} release\n?"
    )
    turns = list(turn.finditer(text))
    rest = turn.sub("", text).strip("\n")
    assert re.fullmatch(r"|acquiring lock…(\n(?!acquiring)[^\n]*)*", rest), f"{worker} went astray: {rest}"
    return len(turns) + (" got" in rest), text.count("fail to release lock")


def check_no_two_at_once(lines):
    """Between a hold's first line and the release by its holder, nobody else may have got the lock."""
    holder = None
    for worker, text in lines:
        if text == "told to stop":
            return
        if text.endswith(" got"):
            assert holder is None, f"{worker} got the lock while {holder} had it"
            holder = worker
        elif text == "release lock!":
            holder = None


def summary(program):
    """The summary: worker to (acquisitions, lost leases)."""
    line = re.compile(r"  (\S+) +(\d+) acquisitions, longest wait +\d+\.\d{3} seconds, +(\d+) lost leases")
    return {m[1]: (int(m[2]), int(m[3])) for m in map(line.fullmatch, program.output) if m}


def test_take_turns_and_lose_now_and_then(context):
    """Runs until both ways of holding were seen. With this seed two workers lose the lock in their first turns."""
    workers = context.start("--workers", "4", "--seconds", "300", "--seed", "0")
    harness.wait_for(lambda: seen(workers, "success to release lock") >= 3, "turns")
    harness.wait_for(lambda: seen(workers, "fail to release lock") >= 1, "a lost turn")
    workers.signal(signal.SIGTERM)
    assert workers.end() == 0
    assert not workers.errors

    counted = {worker: check_turns(worker, lines) for worker, lines in by_worker(workers).items()}
    assert counted.keys() == {"worker-1", "worker-2", "worker-3", "worker-4"}
    told = summary(workers)
    for worker, (acquisitions, failed) in counted.items():
        assert told[worker][0] == acquisitions and told[worker][1] >= failed, f"{worker}: {told[worker]}"
    assert told["all"] == tuple(sum(told[worker][i] for worker in counted) for i in range(2))
    identifiers = [text for _, text in timeline(workers) if text.startswith("[identifier ")]
    assert len({text.split()[1] for text in identifiers}) == len(identifiers), "each acquisition has its own"
    assert workers.output[-1] == "no two workers held the lock at once"
    stamps = [float(match[1]) for match in map(LINE.fullmatch, workers.output) if match]
    assert max(stamps) > 6


def test_one_at_a_time(context):
    """Without a lost turn the printed lines alone show it."""
    workers = context.start("--workers", "3", "--seconds", "7", "--seed", "14")
    assert workers.end() == 0
    lines = timeline(workers)
    assert sum(text.endswith(" got") for _, text in lines) >= 2
    if not any("lock timeout!" in text or "lost" in text for _, text in lines):
        check_no_two_at_once(lines)


def test_an_overlap_is_found(context):
    """The key is deleted under its holders all the time, so that several of them believe in it at once."""
    workers = context.start("--workers", "4", "--seconds", "6")
    while workers.process.poll() is None:
        context.server.command("DEL", LOCK)
    assert workers.end() == 1
    assert workers.output[-1].startswith("OVERLAP: ")
    assert [line for line in workers.output if " us before " in line]
    assert not workers.errors


def test_a_worker_that_crashes_is_told(context):
    workers = context.start("--workers", "2", "--seconds", "60")
    harness.wait_for(lambda: len(by_worker(workers)) == 2, "both workers")
    with open(f"/proc/{workers.process.pid}/task/{workers.process.pid}/children", encoding="ascii") as children:
        os.kill(int(children.read().split()[0]), signal.SIGKILL)
    workers.signal(signal.SIGTERM)
    assert workers.end() == 1
    assert workers.errors == ["workers: worker-1 was killed by signal 9"]
    harness.wait_for(lambda: context.keys() == 0, "the key to expire")


def test_a_worker_that_cannot_start_is_told(context):
    for url in "nonsense", "rediss://127.0.0.1", context.server.url + ".absent":
        workers = context.start_bare(url, "--workers", "2", "--seconds", "60")
        assert workers.end() == 1
        assert {"workers: worker-1 failed", "workers: worker-2 failed"} < set(workers.errors)


def test_ends_when_told_to(context):
    for number in signal.SIGTERM, signal.SIGINT:
        workers = context.start("--seconds", "60")
        workers.line(" got")
        workers.signal(number)
        assert workers.end() == 0
        assert context.keys() == 0
        assert not workers.errors


def test_ends_when_the_time_is_up(context):
    workers = context.start("--seconds", "1", "--workers", "2", "--lock", "another")
    workers.line(" got")
    assert context.server.command("EXISTS", "another", LOCK) <= 1
    assert workers.end() == 0


def test_refuses_wrong_command_lines(context):
    for arguments in [], ["a", "b"], ["unix:///x", "--workers", "0"], ["unix:///x", "--what"]:
        assert context.start_bare(*arguments).end() == 2
    assert context.start_bare("--help").end() == 0


harness.main(globals())
