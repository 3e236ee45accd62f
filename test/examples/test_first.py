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
    assert first.output == ["acquired", "released: success"]


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
    assert first.end() == 1
    acquired, stop, end = first.output
    assert acquired == "acquired" and stop.startswith("the work must stop: ") and end.startswith("lost: ")


def test_refuses_what_is_no_url(context):
    for url in "", "nonsense", "http://127.0.0.1":
        first = context.start_bare(url)
        assert first.end() == 1
        assert len(first.output) == 1 and "URL" in first.output[0]


def test_says_that_there_is_no_server(context):
    harness.check_no_server(context, patient=False)
    assert context.programs[0].output == ["not acquired: the wait timed out"]


def test_is_the_one_that_the_readme_shows(_):
    tree = pathlib.Path(__file__).resolve().parents[2]
    shown = "```c\n" + (tree / "examples/first.c").read_text(encoding="utf-8") + "```\n"
    assert shown in (tree / "README.md").read_text(encoding="utf-8")


harness.main(globals())
