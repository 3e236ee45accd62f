"""The workers: each line of their story, their summary, their picture, and every reason to end with a failure."""

import os
import re
import signal
import xml.etree.ElementTree

import harness

LINE = re.compile(r" *(\d+\.\d{3})  (worker-\d+) (.*)")
LOCK = "evlock-workers"


def picture_file(context):
    return os.path.join(context.server.folder, "workers.svg")


def start(context, *arguments):
    return context.start("--svg", picture_file(context), *arguments)


def clear(context, lock=LOCK):
    """The counter of the fences outlives the program."""
    context.server.command("DEL", f"{{{lock}}}:fence")


def story(lines):
    """The lines of the workers as (worker, text), in the order in which they were written."""
    return [match.groups()[1:] for match in map(LINE.fullmatch, lines) if match]


def seen(program, text):
    return sum(text in line for line in program.output)


def by_worker(program):
    lines = {}
    for worker, text in story(program.output):
        lines.setdefault(worker, []).append(text)
    return lines


def check_turns(worker, lines):
    """Checks the order of one worker's lines; counts its holds, its refused releases, and its waits in vain."""
    text = "\n".join(lines)
    turn = re.compile(
        r"waits\n"
        r"waited \d+\.\d{3} s\n"
        r"holds, fence \d+\n"
        r"has the token \S{36}\n"
        r"(?:"
        r"(?:works, step \d+ of 10\n){10}releases\nreleased\n"
        r"|stalls for 2 s, on purpose\nlost the lock: .*\nstalls for 4 s more\nreleases, too late\n"
        r"could not release: .*\n"
        r"|(?:works, step \d+ of 10\n)+(?:(?:lost the lock|could not extend its lease): .*\n)+"
        r"releases(?:, too late)?\ncould not release: .*\n"
        r")"
        r"holds nothing\n"
        r"pauses for [1-4] s\n?"
    )
    rest = turn.sub("", text).strip("\n")
    assert re.fullmatch(r"|(waits(\n(?!waits)[^\n]*)*\n)?holds nothing", rest), f"{worker} went astray: {rest}"
    return text.count("holds, fence"), text.count("could not release"), text.count(" in vain")


def check_no_two_at_once(lines):
    """Between a hold's first line and the release by its holder, nobody else may have got the lock."""
    holder = None
    for worker, text in lines:
        if text.startswith("holds, fence"):
            assert holder is None, f"{worker} got the lock while {holder} had it"
            holder = worker
        elif text == "releases":
            holder = None


def summary(program):
    """The summary: worker to (holds, lost leases, waits in vain)."""
    line = re.compile(r"  (\S+) +(\d+) +(\d+) +(\d+) +\d+\.\d{3} s")
    return {m[1]: tuple(map(int, m.groups()[1:])) for m in map(line.fullmatch, program.output) if m}


def check_picture(context, workers):
    """Well-formed, named, for light and dark, and with a mark for all that the summary counts."""
    assert seen(workers, f"timeline: {picture_file(context)} ") == 1
    root = xml.etree.ElementTree.parse(picture_file(context)).getroot()
    names = {"svg": "http://www.w3.org/2000/svg"}

    def told(kind):
        return len(root.findall(f".//svg:rect[@class='{kind}']/svg:title", names))

    held, lost, in_vain = summary(workers)["all"]
    assert (told("hold"), told("wait"), told("vain")) == (held, held, in_vain)
    assert len(root.findall(".//svg:path[@class='lost']", names)) == lost + 1, "and one in the legend"
    texts = [text.text for text in root.findall(".//svg:text", names)]
    assert {"the lock", "waits", "waits in vain", "holds", "loses its lease"} < set(texts)
    assert sum(text.startswith("worker-") for text in texts) == len(summary(workers)) - 1
    assert "prefers-color-scheme: dark" in root.find("svg:style", names).text
    return root


def test_take_turns_and_lose_now_and_then(context):
    """Runs until both ways of holding were seen. With this seed two workers lose the lock in their first turns."""
    workers = start(context, "--workers", "4", "--seconds", "300", "--seed", "0")
    harness.wait_for(lambda: seen(workers, " released") >= 3, "turns")
    harness.wait_for(lambda: seen(workers, " could not release") >= 1, "a lost turn")
    workers.signal(signal.SIGTERM)
    assert workers.end() == 0
    assert not workers.errors

    counted = {worker: check_turns(worker, lines) for worker, lines in by_worker(workers).items()}
    assert counted.keys() == {"worker-1", "worker-2", "worker-3", "worker-4"}
    told = summary(workers)
    for worker, (holds, refused, in_vain) in counted.items():
        assert told[worker][0] == holds and told[worker][2] == in_vain, f"{worker}: {told[worker]}"
        assert told[worker][1] >= refused, f"{worker}: {told[worker]}"
    assert told["all"] == tuple(sum(told[worker][i] for worker in counted) for i in range(3))
    tokens = [text for _, text in story(workers.output) if text.startswith("has the token ")]
    assert len(set(tokens)) == len(tokens), "each hold has its own"
    fences = [int(text.split()[-1]) for _, text in story(workers.output) if text.startswith("holds, fence ")]
    assert fences == sorted(set(fences)), "each is greater than the one before"
    assert workers.output[-1].startswith("OK: no two workers held the lock at once")
    stamps = [float(match[1]) for match in map(LINE.fullmatch, workers.output) if match]
    assert max(stamps) > 6
    check_picture(context, workers)
    clear(context)


def test_one_at_a_time(context):
    """Without a lost turn the printed lines alone show it."""
    workers = start(context, "--workers", "3", "--seconds", "7", "--seed", "14")
    assert workers.end() == 0
    lines = story(workers.output)
    assert sum(text.startswith("holds, fence") for _, text in lines) >= 2
    if not any("lost" in text for _, text in lines):
        check_no_two_at_once(lines)
    clear(context)


def test_an_overlap_is_found(context):
    """The key is deleted under its holders all the time, so that several of them believe in it at once."""
    workers = start(context, "--workers", "4", "--seconds", "6")
    while workers.process.poll() is None:
        context.server.command("DEL", LOCK)
    assert workers.end() == 1
    assert workers.output[-1].startswith("FAILED: two workers held the lock at once, ")
    assert [line for line in workers.output if " us before " in line]
    assert not workers.errors
    root = check_picture(context, workers)
    assert "HELD TWICE AT ONCE" in "".join(root.itertext())
    clear(context)


def test_waits_in_vain_are_counted(context):
    context.server.command("SET", LOCK, "another")
    workers = start(context, "--workers", "2", "--seconds", "300")
    harness.wait_for(lambda: seen(workers, " waits") == 2 and context.server.attempts() > 10, "attempts")
    workers.signal(signal.SIGTERM)
    assert workers.end() == 1
    assert workers.output[-1] == "FAILED: no worker ever held the lock"
    assert {worker: check_turns(worker, lines) for worker, lines in by_worker(workers).items()} == {
        "worker-1": (0, 0, 1),
        "worker-2": (0, 0, 1),
    }
    assert summary(workers)["all"] == (0, 0, 2)
    assert not [line for line in workers.output if line.startswith("  all") and " 0.000 s" in line]
    check_picture(context, workers)
    context.server.command("DEL", LOCK)


def test_a_server_that_goes_away_is_waited_for(context):
    server = context.server
    workers = start(context, "--workers", "2", "--seconds", "300")
    harness.wait_for(lambda: len(by_worker(workers)) == 2, "both workers")
    server.path += ".away"
    os.rename(server.path[: -len(".away")], server.path)
    server.command("CLIENT", "KILL", "TYPE", "normal")
    workers.line("cannot connect: ")
    os.rename(server.path, server.path[: -len(".away")])
    server.path = server.path[: -len(".away")]
    workers.line("is connected again")
    workers.line("holds, fence")
    workers.signal(signal.SIGTERM)
    assert workers.end() == 0
    assert not workers.errors
    clear(context)


def test_a_worker_that_crashes_is_told(context):
    workers = start(context, "--workers", "2", "--seconds", "60")
    harness.wait_for(lambda: len(by_worker(workers)) == 2, "both workers")
    with open(f"/proc/{workers.process.pid}/task/{workers.process.pid}/children", encoding="ascii") as children:
        os.kill(int(children.read().split()[0]), signal.SIGKILL)
    harness.wait_for(lambda: workers.errors, "its end")
    workers.signal(signal.SIGTERM)
    assert workers.end() == 1
    assert story(workers.errors) == [("worker-1", "FAILED: killed by signal 9")]
    assert workers.output[-1] == "FAILED: 1 of 2 workers failed"
    check_picture(context, workers)
    harness.wait_for(lambda: not context.server.command("EXISTS", LOCK), "the key to expire")
    clear(context)


def test_says_that_there_is_no_server(context):
    harness.check_no_server(context, "--svg", picture_file(context), "--workers", "2", "--seconds", "60")
    for workers in context.programs:
        assert [text for _, text in story(workers.errors)][1:] == ["FAILED: no server in 3 s"], "once, for all"
        assert workers.output[-1] == "FAILED: 2 of 2 workers failed"
    assert not os.path.exists(picture_file(context))


def test_a_wrong_url_is_told_once(context):
    for url in "nonsense", "http://127.0.0.1":
        workers = context.start_bare(url, "--workers", "2", "--seconds", "60")
        assert workers.end() == 1
        assert len(workers.errors) == 1 and "URL" in workers.errors[0]
        assert workers.output[-1] == "FAILED: 2 of 2 workers failed"


def test_a_picture_that_cannot_be_written_is_told(context):
    workers = start(context, "--workers", "1", "--seconds", "1", "--svg", picture_file(context) + "/no")
    assert workers.end() == 1
    assert len(workers.errors) == 1 and picture_file(context) + "/no: " in workers.errors[0]
    assert workers.output[-1].startswith("FAILED: ")
    clear(context)


def test_ends_when_told_to(context):
    for number in signal.SIGTERM, signal.SIGINT:
        workers = start(context, "--seconds", "60")
        workers.line("holds, fence")
        workers.signal(number)
        assert workers.end() == 0
        assert context.server.command("EXISTS", LOCK) == 0
        assert not workers.errors
    clear(context)


def test_ends_when_the_time_is_up(context):
    workers = start(context, "--seconds", "1", "--workers", "2", "--lock", "another")
    workers.line("holds, fence")
    assert context.server.command("EXISTS", "another", LOCK) <= 1
    assert workers.end() == 0
    clear(context, "another")


def test_refuses_wrong_command_lines(context):
    for arguments in [], ["a", "b"], ["unix:///x", "--workers", "0"], ["unix:///x", "--what"]:
        assert context.start_bare(*arguments).end() == 2
    assert context.start_bare("--help").end() == 0


harness.main(globals())
