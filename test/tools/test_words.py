"""What evlock says: which server, who holds, what to write instead, and each thing once."""

import os
import pty
import signal
import subprocess

import command
from command import run, start

HOLDER = "host7:4711"


def on_terminal(context, *arguments):
    """What evlock writes to a terminal that is its standard error."""
    leader, follower = pty.openpty()
    with subprocess.Popen(command.words(context, *arguments), stdin=subprocess.DEVNULL, stderr=follower) as process:
        os.close(follower)
        said = b""
        try:
            while part := os.read(leader, 4096):
                said += part
        except OSError:  # the other end is closed
            pass
        os.close(leader)
    return process.returncode, said.decode()


def test_a_server_is_named(context):
    said = run(context, "run", "-u", "redis://127.0.0.1:1", "a", "true")
    assert "(127.0.0.1:1: Connection refused)" in said.stderr, said
    said = run(context, "run", "-u", "redis://[::1]:1", "a", "true")
    assert "([::1]:1: " in said.stderr, said
    absent = context.server.url.removeprefix("unix://") + ".absent"
    said = run(context, "run", "-u", f"unix://{absent}", "a", "true")
    assert f"({absent}: No such file or directory)" in said.stderr, said


def test_the_log_names_the_server(context):
    path = context.server.url.removeprefix("unix://")
    assert f"node 0 ({path}): connected" in run(context, "run", "-v", "a", "true").stderr


def test_a_url_is_blamed_once(context):
    for urls, words in (["redis://"], "evlock: cannot use URL: no host\n"), \
                       (["redis://a", "redis://"], "evlock: cannot use the URL of node 1: no host\n"):
        options = [word for url in urls for word in ("-u", url)]
        said = run(context, "run", *options, "a", "true")
        assert said.returncode == 125 and said.stderr == words, said


def test_a_trouble_is_said_once(context):
    """Also with -v: the library's log has it, and the command's error."""
    absent = context.server.path + ".absent"
    for line in ["run", "a", "true"], ["hold", "a"], ["status", "a"], ["wait", "a"], ["list"]:
        said = run(context, line[0], "-v", "-u", f"unix://{absent}", *line[1:])
        assert said.returncode == 125 and said.stderr.count("\n") == 1, said
        assert f"({absent}: No such file or directory)" in said.stderr, said
    program = start(context, "run", "-v", "--ttl", "2s", "a", *command.STAYS)
    program.line("")
    context.server.command("DEL", "a")
    assert command.wait(program) == 124
    assert sum("not owned" in line for line in program.errors) == 1, program.errors


def test_each_node_says_why_it_is_away(context):
    absent = [f"{context.server.path}.{number}" for number in range(3)]
    said = run(context, "run", "-v", *[word for path in absent for word in ("-u", f"unix://{path}")], "a", "true")
    for number, path in enumerate(absent):
        assert f"node {number} ({path}): not connected: No such file or directory" in said.stderr, said


def test_not_had_says_who_holds(context):
    with holding(context):
        for wait in ["-n"], ["-w", "100ms"]:
            said = run(context, "run", "-v", *wait, "a", "true")
            assert said.returncode == 1 and f"a is held by {HOLDER}" in said.stderr, said
            status, words = on_terminal(context, "hold", *wait, "a")
            assert status == 1 and f"a is held by {HOLDER}" in words, words
            # What cron runs on many machines has nothing to mail.
            said = run(context, "run", *wait, "a", "true")
            assert said.returncode == 1 and not said.stderr, said
    command.block(context)
    said = run(context, "run", "-v", "-n", "a", "true")
    assert said.returncode == 1 and "a is held by another" in said.stderr, said
    command.unblock(context)


class holding:
    """Somebody who gave a name holds the lock."""

    def __init__(self, context):
        self.program = start(context, "run", "--holder", HOLDER, "a", *command.STAYS)
        self.program.line("")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.process.send_signal(signal.SIGTERM)
        command.wait(self.program)


def test_an_option_behind_the_name_is_no_command(context):
    said = run(context, "run", "a", "-c", "echo ran")
    assert said.returncode == 125 and not said.stdout, said
    assert "options go before NAME" in said.stderr and "sh -c" in said.stderr, said
    assert run(context, "elect", "a", "--again", "true").returncode == 125
    said = run(context, "run", "a", "--", "-c")  # which somebody may have called so
    assert said.returncode == 127, said


def test_a_short_limit_has_a_grace_that_fits(context):
    said = run(context, "run", "--at-most", "1s", "a", "sleep", "60")
    assert said.returncode == 124 and "at-most says" in said.stderr, said
    said = run(context, "run", "--at-most", "1s", "-k", "1s", "a", "true")
    assert said.returncode == 125 and "--kill-after" in said.stderr, said


def test_a_risk_is_said_once(context):
    program = start(context, "run", "--ttl", "1s", "a", *command.STAYS)
    program.line("")
    context.server.process.send_signal(signal.SIGSTOP)
    try:
        assert command.wait(program) == 124
    finally:
        context.server.process.send_signal(signal.SIGCONT)
    assert sum("at risk" in line for line in program.errors) == 1, program.errors


def test_the_doctor_warns_once(context):
    rights = "~* &* +@all -publish -@dangerous +info"
    context.server.command("ACL", "SETUSER", "patient", "reset", "on", ">secret", *rights.split())
    os.environ["EVLOCK_PASSWORD"] = "secret"
    try:
        said = run(context, "doctor", "--user", "patient", "--queue")
    finally:
        del os.environ["EVLOCK_PASSWORD"]
        context.server.command("ACL", "DELUSER", "patient")
    assert said.returncode == 1 and (said.stdout + said.stderr).count("lacks messages") == 1, said


if __name__ == "__main__":
    command.main(globals())
