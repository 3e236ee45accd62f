"""The first example: its work, its end, and how it is told of a loss. (What it prints comes when it ends.)"""

import pathlib

import harness


def held(context):
    return context.server.command("GET", "invoices")


def test_works_and_gives_the_lock_back(context):
    first = context.start()
    harness.wait_for(lambda: held(context), "the key")
    assert 0 < context.server.command("PTTL", "invoices") <= 2000
    assert first.end() == 0
    acquire, end = first.output
    assert acquire.startswith("acquire: ") and end.startswith("end: ")
    assert acquire[9:] == end[5:], "both are the same success"


def test_two_take_turns(context):
    one = context.start()
    token = harness.wait_for(lambda: held(context), "the key")
    other = context.start()
    harness.wait_for(lambda: held(context) not in (token, None), "the other's key")
    assert one.end() == 0 and other.end() == 0
    assert one.output == other.output


def test_is_told_of_a_loss(context):
    first = context.start()
    harness.wait_for(lambda: held(context), "the key")
    context.server.command("DEL", "invoices")
    assert first.end() == 0
    acquire, stop, end = first.output
    assert acquire.startswith("acquire: ") and stop.startswith("the work must stop: ") and end.startswith("end: ")


def test_refuses_what_is_no_url(context):
    for arguments in [], ["nonsense"], ["rediss://127.0.0.1"]:
        first = context.start_bare(*arguments)
        assert first.end() == 1
        assert len(first.output) == 1 and "URL" in first.output[0]


def test_is_the_one_that_the_readme_shows(_):
    tree = pathlib.Path(__file__).resolve().parents[2]
    shown = "```c\n" + (tree / "examples/first.c").read_text(encoding="utf-8") + "```\n"
    assert shown in (tree / "README.md").read_text(encoding="utf-8")


harness.main(globals())
