"""evlock hold: holds a lock until a signal comes or its input ends."""

import json
import signal

import command
from command import start, status


def test_holds_until_its_input_ends(context):
    program = start(context, "hold", "a")
    fence = int(program.line(""))
    assert command.held(context)
    assert status(context, "run", "-n", "a", "true") == 1
    program.process.stdin.close()
    assert command.wait(program) == 0
    assert not command.held(context)
    program = start(context, "hold", "a")
    assert int(program.line("")) > fence
    assert program.end() == 0


def test_ends_its_wait_when_its_input_ends(context):
    command.block(context)
    assert status(context, "hold", "-E", 7, "a", input="") == 7
    command.unblock(context)


def test_holds_until_a_signal(context):
    for number in signal.SIGTERM, signal.SIGINT:
        program = start(context, "hold", "a")
        program.line("")
        program.signal(number)
        assert command.wait(program) == 0
        assert not command.held(context)


def test_ends_its_wait_by_a_signal(context):
    command.block(context)
    program = start(context, "hold", "a")
    command.queued(context)
    program.signal(signal.SIGTERM)
    assert command.wait(program) == 128 + signal.SIGTERM and not program.output
    command.unblock(context)


def test_writes_json(context):
    program = start(context, "hold", "--json", "--holder", 'a "host"\\', "ä\n")
    shown = json.loads(program.line("{"))
    assert program.end() == 0
    assert shown["name"] == "ä\n" and shown["holder"] == 'a "host"\\' and shown["fence"] > 0, shown
    assert shown["ttl_ms"] == 10000


def test_is_lost(context):
    program = start(context, "hold", "--ttl", "500ms", "a")
    program.line("")
    context.server.command("DEL", "a")
    assert command.wait(program) == 124
    assert "lost a" in program.errors[0]


def test_is_held_for_at_most_so_long(context):
    program = start(context, "hold", "--ttl", "500ms", "--at-most", "1s", "a")
    assert command.wait(program) == 124
    assert "--at-most" in program.errors[0], program.errors
    assert not command.held(context)


def test_gives_back_what_nobody_was_told(context):
    for how in [], ["--json"]:
        assert command.unheard(context, "hold", *how, "a") == [125, 125, 125]
        assert not command.held(context)


def test_is_not_had(context):
    command.block(context)
    assert status(context, "hold", "-n", "-E", 5, "a") == 5
    command.unblock(context)


if __name__ == "__main__":
    command.main(globals())
