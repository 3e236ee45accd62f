"""evlock doctor: what the servers can do, what it costs that they cannot do more, and what works."""

import json
import os

import command
import harness
from command import run

BAD = 1
TROUBLE = 125
ALL = "~* &* -@all +get +set +del +pttl +pexpire +time +evalsha +script|load +info +zadd +zpopmin +zrem +zrank +zcard"
MORE = "+publish +pubsub|numsub +subscribe +scan +client +wait +mget"


def trials(said):
    """The result of each trial, by its name."""
    return {trial["name"]: trial["result"] for trial in json.loads(said.stdout)["trials"]}


def as_user(context, rights, *arguments):
    """What it says to a user who has these rights."""
    context.server.command("ACL", "SETUSER", "patient", "reset", "on", ">secret", *ALL.split(), *rights.split())
    os.environ["EVLOCK_PASSWORD"] = "secret"
    try:
        return run(context, "doctor", "--json", "--user", "patient", *arguments)
    finally:
        del os.environ["EVLOCK_PASSWORD"]
        context.server.command("ACL", "DELUSER", "patient")


def test_a_healthy_server(context):
    said = run(context, "doctor")
    assert said.returncode == 0 and "nothing" in said.stdout and "--queue tries it" in said.stdout, said
    said = run(context, "doctor", "--json", "--queue", "--fence")
    assert said.returncode == 0, said
    answer = json.loads(said.stdout)
    assert answer["ok"] and answer["servers"] == [{"state": "connected", "status": "EVLOCK_OK", "missing": []}], answer
    tried = {"lock": "works", "queue": "works", "fence": "works", "replicas": "not tried", "list": "works"}
    assert trials(said) == tried, said


def test_what_is_not_allowed(context):
    said = as_user(context, MORE, "--queue", "--fence")
    assert said.returncode == 0, said
    said = as_user(context, MORE + " -publish", "--queue")
    assert said.returncode == BAD and trials(said)["queue"] == "fails", said
    assert "channels" in json.loads(said.stdout)["servers"][0]["missing"], said
    assert any("PUBLISH" in line or "publish" in line for line in json.loads(said.stdout)["log"]), said
    said = as_user(context, MORE + " -time", "--fence")
    assert said.returncode == BAD and trials(said)["fence"] == "fails", said
    said = as_user(context, MORE + " -wait", "--min-replicas", "1")
    assert said.returncode == BAD and trials(said)["replicas"] == "fails", said


def test_what_is_not_asked_for_may_be_missing(context):
    said = as_user(context, MORE + " -publish -time -wait -scan")
    assert said.returncode == 0 and trials(said)["list"] == "fails", said


def test_no_lock_is_possible(context):
    said = as_user(context, MORE + " -set")
    assert said.returncode == BAD and trials(said)["lock"] == "fails", said
    said = as_user(context, MORE + " -evalsha")
    assert said.returncode == TROUBLE and not said.stdout, said


def test_several_servers(context):
    away = context.server.url + ".absent"
    other = harness.Server(context.server.process.args[0])
    urls = ["-u", context.server.url, "-u", away]
    try:
        # Servers that have just started count when --max-ttl has passed.
        said = run(context, "doctor", "--json", "--max-ttl", "2s", "--ttl", "2s", *urls, "-u", other.url)
    finally:
        other.end()
    assert said.returncode == 0, said
    assert [server["state"] for server in json.loads(said.stdout)["servers"]] == ["connected", "away", "connected"]
    said = run(context, "doctor", "--json", *urls)
    assert said.returncode == TROUBLE and "No such file" in said.stderr, said


def test_without_a_server(context):
    said = run(context, "doctor", "-u", context.server.url + ".absent")
    assert said.returncode == TROUBLE and "No such file" in said.stderr, said


def test_a_lock_of_another_is_left_alone(context):
    command.block(context)
    assert run(context, "doctor", "--queue", "--fence").returncode == 0
    assert set(context.server.command("KEYS", "*")) == {"a", "{evlock-doctor}:fence"}
    command.unblock(context)


if __name__ == "__main__":
    command.main(globals())
