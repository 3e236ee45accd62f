"""evlock acquire, extend and release: a lease that goes from one run to the next by its token."""

import json
import os
import pathlib
import stat

import command
from command import run, start, status

BUSY = 1
TROUBLE = 125


def token_file(context):
    return pathlib.Path(context.server.folder) / "token"


def ttl(context):
    return context.server.command("PTTL", "a")


def test_a_lease_goes_from_run_to_run(context):
    file = token_file(context)
    assert status(context, "acquire", "--ttl", "50s", "--token-file", file, "a") == 0
    assert context.server.command("GET", "a") + "\n" == file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert 0 < ttl(context) <= 50_000
    assert status(context, "run", "-n", "a", "true") == BUSY
    assert status(context, "extend", "--ttl", "500s", "--token-file", file, "a") == 0
    assert 50_000 < ttl(context) <= 500_000
    assert status(context, "extend", "--ttl", "20s", "--token-file", file, "a") == 0
    assert 0 < ttl(context) <= 20_000
    assert status(context, "release", "--token-file", file, "a") == 0
    assert not command.held(context)


def test_a_token_goes_by_a_descriptor(context):
    reader, writer = os.pipe()
    assert status(context, "acquire", "--token-fd", writer, "a", pass_fds=[writer]) == 0
    os.close(writer)
    assert command.held(context)
    assert status(context, "release", "--token-fd", reader, "a", pass_fds=[reader]) == 0
    os.close(reader)
    assert not command.held(context)
    assert status(context, "acquire", "--token-file", token_file(context), "a") == 0
    with token_file(context).open() as text:
        assert status(context, "release", "--token-fd", 0, "a", stdin=text) == 0


def test_a_token_is_said_to_nobody(context):
    file = token_file(context)
    steps = ["acquire", "extend", "release"]
    for step in steps:
        said = run(context, step, "-vv", "--json", "--token-file", file, "a")
        assert said.returncode == 0 and said.stderr, said
        assert file.read_text().strip() not in said.stdout + said.stderr


def test_an_acquire_says_what_it_has(context):
    file = token_file(context)
    said = run(context, "acquire", "--token-file", file, "a")
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
    assert status(context, "release", "--token-file", file, "a") == 0
    fence = int(run(context, "acquire", "--fence", "--token-file", file, "a").stdout)
    assert run(context, "release", "--json", "--token-file", file, "a").stdout == '{"name": "a", "released": true}\n'
    said = json.loads(
        run(context, "acquire", "--fence", "--json", "--holder", "me", "--ttl", "9s", "--token-file", file, "a").stdout
    )
    assert said["name"] == "a" and said["holder"] == "me" and said["ttl_ms"] == 9000, said
    assert said["fence"] > fence and 0 < said["remaining_ms"] <= 9000, said
    said = json.loads(run(context, "extend", "--json", "--ttl", "7s", "--token-file", file, "a").stdout)
    assert said == {"name": "a", "ttl_ms": 7000}
    assert status(context, "release", "--token-file", file, "a") == 0


def test_a_lock_that_is_not_had_leaves_the_file(context):
    command.block(context)
    file = token_file(context)
    file.write_text("a token of before\n")
    assert status(context, "acquire", "-n", "--token-file", file, "a") == BUSY
    assert status(context, "acquire", "-w", "100ms", "-E", 9, "--token-file", file, "a") == 9
    assert file.read_text() == "a token of before\n"
    command.unblock(context)


def test_a_longer_token_of_before_is_replaced(context):
    file = token_file(context)
    file.write_text("x" * 200)
    assert status(context, "acquire", "--token-file", file, "a") == 0
    assert file.read_text() == context.server.command("GET", "a") + "\n"
    assert status(context, "release", "--token-file", file, "a") == 0


def test_another_token_does_nothing(context):
    command.block(context)
    file = token_file(context)
    file.write_text("that of a stranger\n")
    before = ttl(context)
    for step in "extend", "release":
        said = run(context, step, "--token-file", file, "a")
        assert said.returncode == BUSY and "that token does not hold it" in said.stderr, said
    assert 0 < ttl(context) <= before
    command.unblock(context)
    assert status(context, "release", "--token-file", file, "a") == BUSY


def test_a_foreign_token_is_a_token(context):
    command.block(context)
    file = token_file(context)
    file.write_text("another")
    assert status(context, "extend", "--ttl", "30s", "--token-file", file, "a") == 0
    assert context.server.command("GET", "a") == "another" and ttl(context) <= 30_000
    assert status(context, "release", "--token-file", file, "a") == 0


def test_a_place_for_the_token_is_needed(context):
    file = token_file(context)
    file.write_text("another\n")
    for step in "acquire", "extend", "release":
        assert "--token-file" in run(context, step, "a").stderr
        assert status(context, step, "a") == TROUBLE
        assert status(context, step, "--token-file", file, "--token-fd", 1, "a") == TROUBLE
        assert status(context, step, "--token-file", context.server.folder, "a") == TROUBLE
        assert status(context, step, "--token-fd", 77, "a") == TROUBLE
    for text in "", "\n", "x" * 129 + "\n":
        file.write_text(text)
        assert "is no token" in run(context, "release", "--token-file", file, "a").stderr
    assert not command.held(context)


def test_a_token_that_nobody_gets_is_given_back(context):
    reader, writer = os.pipe()
    os.close(reader)
    said = run(context, "acquire", "--token-fd", writer, "a", pass_fds=[writer])
    os.close(writer)
    assert said.returncode == TROUBLE and "Broken pipe" in said.stderr, said
    assert not command.held(context)


def test_a_fence_that_nobody_reads_is_given_back(context):
    for how in ["--fence"], ["--json"], ["--fence", "--json"]:
        assert command.unheard(context, "acquire", *how, "--token-file", token_file(context), "a") == [TROUBLE] * 3
        assert not command.held(context)
    with open("/dev/full", "wb") as full:
        assert status(context, "acquire", "--token-fd", full.fileno(), "a", pass_fds=[full.fileno()]) == TROUBLE
    assert not command.held(context)


def test_a_signal_ends_a_wait_for_the_lock(context):
    command.block(context)
    program = start(context, "acquire", "--token-file", token_file(context), "a")
    command.queued(context)
    program.process.terminate()
    assert command.wait(program) == 128 + 15
    assert context.server.command("EXISTS", "{a}:queue") == 0
    command.unblock(context)


def test_a_release_hands_on(context):
    file = token_file(context)
    assert status(context, "acquire", "--ttl", "600s", "--token-file", file, "a") == 0
    waiter = start(context, "run", "a", "echo", "mine")
    command.queued(context)
    assert status(context, "release", "--token-file", file, "a") == 0
    waiter.line("mine")
    assert command.wait(waiter) == 0


def test_an_acquire_waits_in_line(context):
    file = token_file(context)
    holder = start(context, "hold", "a")
    holder.line("")
    program = start(context, "acquire", "--ttl", "600s", "--token-file", file, "a")
    command.queued(context)
    holder.process.stdin.close()
    assert command.wait(program) == 0
    assert context.server.command("GET", "a") + "\n" == file.read_text()
    assert status(context, "release", "--token-file", file, "a") == 0


def test_gives_an_end_to_a_key_that_has_none(context):
    file = token_file(context)
    assert status(context, "acquire", "--token-file", file, "a") == 0
    context.server.command("PERSIST", "a")
    assert status(context, "extend", "--ttl", "20s", "--token-file", file, "a") == 0
    assert 0 < ttl(context) <= 20_000
    assert status(context, "release", "--token-file", file, "a") == 0


if __name__ == "__main__":
    command.main(globals())
