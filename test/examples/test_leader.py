"""leader: one of two works, and the other leads as soon as it leaves; without a server it says so and goes on."""

import signal
import time

import harness

HELD = "held by another"
AWAY = "the server cannot be reached"


def test_the_next_leads_at_once(context):
    first = context.start()
    first.line("leading")
    second = context.start()
    second.line(HELD)
    first.line("work")
    first.signal(signal.SIGTERM)
    second.line("leading")
    assert first.end() == 0
    assert first.output[-1] == "cancelled", first.output
    second.line("work")
    second.signal(signal.SIGTERM)
    assert second.end() == 0
    assert [line for line in second.output if line != "work"] == [HELD, "leading", "cancelled"], second.output


def test_without_a_server_it_says_so_and_waits(context):
    begun = time.monotonic()
    leader = context.start_bare(context.server.url + ".none")
    leader.line(AWAY)
    assert time.monotonic() - begun < harness.PATIENCE / 2
    leader.signal(signal.SIGTERM)
    assert leader.end() == 0
    assert leader.output == [AWAY, "cancelled"], leader.output


def test_is_the_one_that_the_guide_shows(_):
    harness.check_shown("leader.c")


harness.leave_memory()
harness.main(globals())
