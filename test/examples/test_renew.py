"""The renewing task: to its end over many ttls, and each way in which it is told of a loss."""

import signal

import harness


def test_holds_for_longer_than_the_ttl(context):
    renew = context.start("--ttl", "500", "--seconds", "3")
    renew.line("acquired")
    token = context.server.command("GET", "evlock-renew")
    renew.line("working")
    renew.line("the task is done")
    assert renew.end() == 0
    assert token and len([line for line in renew.output if line.startswith("working")]) == 12
    assert renew.output[-1].startswith("released: ")
    assert not [line for line in renew.output if line.startswith(("lost", "at risk"))]


def test_is_told_when_the_lock_is_broken(context):
    renew = context.start("--ttl", "1000", "--seconds", "60", "--break-after", "500")
    renew.line("acquired")
    renew.line("somebody broke the lock: ")
    renew.line("lost: ")
    assert renew.end() == 1
    assert len([line for line in renew.output if line.startswith("lost: ")]) == 1
    assert renew.output[-1].startswith("lost: "), "no work after the loss"


def test_is_told_when_the_key_is_taken(context):
    renew = context.start("--seconds", "60")
    renew.line("working")
    context.server.command("SET", "evlock-renew", "another", "PX", "60000")
    renew.line("lost: ")
    assert renew.end() == 1
    assert context.server.command("GET", "evlock-renew") == "another", "the new holder is left alone"
    context.server.command("DEL", "evlock-renew")


def test_is_warned_and_told_when_the_server_is_silent(context):
    renew = context.start("--ttl", "1000", "--seconds", "60")
    renew.line("working")
    context.server.freeze()
    renew.line("at risk: ")
    lost = renew.line("lost: ")
    context.server.thaw()
    assert renew.end() == 1
    assert "deadline" in lost
    harness.wait_for(lambda: context.keys() == 0, "the key to expire")


def test_is_told_of_its_deadline_even_when_stopped_itself(context):
    renew = context.start("--ttl", "300", "--seconds", "60")
    renew.line("working")
    renew.signal(signal.SIGSTOP)
    harness.wait_for(lambda: context.keys() == 0, "the key to expire")
    renew.signal(signal.SIGCONT)
    renew.line("lost: ")
    assert renew.end() == 1
    assert renew.output[-1].startswith("lost: "), "no work after the loss"


def test_ends_when_told_to(context):
    for number in signal.SIGTERM, signal.SIGINT:
        renew = context.start("--seconds", "60")
        renew.line("working")
        assert context.keys() == 1
        renew.signal(number)
        assert renew.end() == 1
        assert context.keys() == 0
        assert not renew.errors


def test_gives_up_waiting(context):
    context.server.command("SET", "evlock-renew", "another")
    renew = context.start()
    assert renew.end() == 1
    assert "acquire" in renew.errors[0]
    context.server.command("DEL", "evlock-renew")


def test_says_that_there_is_no_server(context):
    harness.check_no_server(context)


def test_refuses_wrong_command_lines(context):
    for arguments in [], ["a", "b"], ["unix:///x", "--ttl", "0"], ["unix:///x", "--what"]:
        assert context.start_bare(*arguments).end() == 2
    assert context.start_bare("nonsense").end() == 1
    assert context.start_bare("--help").end() == 0


harness.main(globals())
