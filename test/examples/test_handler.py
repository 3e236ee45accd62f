"""The handler: its calls take turns, within a process and between two, and end when the program does."""

import os
import signal
import subprocess

import harness


def turns(lines):
    """Checks that calls begin and end in turn; how many there were."""
    events = [line.rsplit(" ", 1) for line in lines if line.endswith((" begins", " ends"))]
    for begin, end in zip(events[::2], events[1::2]):
        assert begin[1] == "begins" and end == [begin[0], "ends"], f"{begin} is followed by {end}"
    assert len(events) % 2 == 0
    return len(events) // 2


def test_calls_of_two_clients_take_turns(context):
    handler = context.start("--calls", "4", "--work", "50")
    assert handler.end() == 0
    assert turns(handler.output) == 8
    assert not [line for line in handler.output if "run:" in line or "ran:" in line]


def test_its_lock_is_named_after_file_and_function(context):
    handler = context.start("--calls", "1")
    assert handler.end() == 0
    names = [line.split(" calls ")[1] for line in handler.output if " calls " in line]
    assert len(names) == 2 and names[0] == names[1]
    assert names[0] == "handler.c:nightly_report"


def test_calls_of_two_processes_take_turns(context):
    """Both write to one pipe, so that their lines are in the order in which they were written."""
    command = context.command("--calls", "3", "--work", "50")
    reading, writing = os.pipe()
    processes = [subprocess.Popen(command, stdout=writing) for _ in range(2)]
    os.close(writing)
    with open(reading, encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    assert [process.wait() for process in processes] == [0, 0]
    assert turns(lines) == 12


def test_a_busy_lock_makes_the_calls_wait(context):
    probe = context.start("--calls", "1")
    name = probe.line(" calls ").split(" calls ")[1]
    assert probe.end() == 0
    context.server.command("SET", name, "another")
    handler = context.start("--calls", "1")
    handler.line("client 2 calls ")
    harness.wait_for(lambda: context.server.attempts() > 20, "attempts")
    assert not [line for line in handler.output if line.endswith(" begins")]
    context.server.command("DEL", name)
    assert handler.end() == 0
    assert turns(handler.output) == 2


def test_ends_when_told_to(context):
    for number in signal.SIGTERM, signal.SIGINT:
        handler = context.start("--calls", "3", "--work", "60000")
        handler.line(" begins")
        assert context.keys() == 1
        handler.signal(number)
        assert handler.end() == 1
        assert turns(handler.output) == 1
        assert len([line for line in handler.output if "did not run:" in line]) == 5
        assert context.keys() == 0
        assert not handler.errors


def test_says_that_there_is_no_server(context):
    harness.check_no_server(context)


def test_refuses_wrong_command_lines(context):
    for arguments in [], ["a", "b"], ["unix:///x", "--calls", "0"], ["unix:///x", "--what"]:
        assert context.start_bare(*arguments).end() == 2
    assert context.start_bare("nonsense").end() == 1
    assert context.start_bare("--help").end() == 0


harness.main(globals())
