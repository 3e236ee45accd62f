"""The bounded pool: its jobs are all done, and at most eight at a time."""

import harness


def test_does_all_jobs(context):
    pool = context.start()
    assert pool.end() == 0
    assert pool.output == ["400 of 400 jobs done"]


def test_counts_what_is_not_done(context):
    for job in range(3):
        context.server.command("SET", f"job/{job}", "another", "PX", "60000")
    pool = context.start()
    assert pool.end() == 1
    assert pool.output == ["376 of 400 jobs done"]
    for job in range(3):
        context.server.command("DEL", f"job/{job}")


def test_cannot_start_without_a_url(context):
    pool = context.start_bare("nonsense")
    assert pool.end() == 1
    assert pool.errors[0].startswith("pool: cannot start: "), pool.errors


def test_is_the_one_that_the_guide_shows(_):
    harness.check_shown("pool.c")


harness.leave_memory()
harness.main(globals())
