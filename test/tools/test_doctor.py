"""evlock doctor: what the servers can do, what it costs that they cannot do more, and what works."""

import contextlib
import json
import os
import re
import socket

import command
import harness
from command import run

BAD = 1
TROUBLE = 125
ALL = "~* &* -@all +get +set +del +pttl +pexpire +time +evalsha +script|load +info +zadd +zpopmin +zrem +zrank +zcard"
MORE = "+publish +pubsub|numsub +subscribe +scan +client +wait +mget"


def servers(said):
    """What is known of each server, by its address."""
    return {server["address"]: server for server in json.loads(said.stdout)["servers"]}


def trials(said):
    """The result of each trial, by its name."""
    return {trial["name"]: trial["result"] for trial in json.loads(said.stdout)["trials"]}


def product_of(server):
    """What the server is called, and its version."""
    said = dict(line.split(":", 1) for line in server.command("INFO", "server").splitlines() if ":" in line)
    return ("Valkey", said["valkey_version"]) if "valkey_version" in said else ("Redis", said["redis_version"])


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
    assert said.returncode == 0 and "--queue tries it" in said.stdout, said
    assert "persistence: no append-only file" in said.stdout and "lacks" not in said.stdout, said
    said = run(context, "doctor", "--json", "--queue", "--fence")
    assert said.returncode == 0, said
    answer = json.loads(said.stdout)
    product, version = product_of(context.server)
    healthy = {"state": "connected", "status": "EVLOCK_OK", "missing": []}
    known = {"address": context.server.path, "product": product, "version": version, "aof": False}
    assert answer["ok"] and answer["servers"] == [healthy | known], answer
    assert run(context, "doctor").stdout.count(f"version: {product} {version}\n") == 1
    tried = {"lock": "works", "queue": "works", "fence": "works", "replicas": "not tried", "list": "works"}
    assert trials(said) == tried, said


def test_a_server_that_keeps_its_data(context):
    context.server.command("CONFIG", "SET", "appendonly", "yes")
    assert servers(run(context, "doctor", "--json"))[context.server.path]["aof"] is True
    said = run(context, "doctor")
    assert said.returncode == 0 and "persistence: an append-only file" in said.stdout, said


def test_what_may_not_be_asked(context):
    said = as_user(context, MORE + " -info")
    assert said.returncode == 0, said
    known = servers(said)[context.server.path]
    assert (known["product"], known["version"], known["aof"]) == ("", "", None), said
    context.server.command("ACL", "SETUSER", "default", "-info")
    said = run(context, "doctor")
    assert "version: not known\n" in said.stdout and "persistence: not known: INFO" in said.stdout, said


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
        table = run(context, "doctor", "--max-ttl", "2s", "--ttl", "2s", *urls, "-u", other.url)
    finally:
        other.end()
    assert said.returncode == 0, said
    states = [(server["address"], server["state"]) for server in json.loads(said.stdout)["servers"]]
    paths = [url.removeprefix("unix://") for url in (context.server.url, away, other.url)]
    assert states == list(zip(paths, ["connected", "away", "connected"])), states
    assert re.search("away +.*No such file", table.stdout), table
    said = run(context, "doctor", "--json", *urls)
    assert said.returncode == TROUBLE and "No such file" in said.stderr, said


def free_ports(count):
    """Ports that nobody has just now."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def start_master(context, stack):
    """A server that can be one of a cluster, and its two ports, which another process might take first. The stack ends
    it."""
    for _ in range(10):
        port, bus = map(str, free_ports(2))
        options = ["--port", port, "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-port", bus]
        try:
            server = harness.Server(context.server.process.args[0], *options)
        except AssertionError:
            continue
        stack.callback(server.end)
        return server, port, bus
    raise AssertionError("no port was to be had")


def start_cluster(context, stack):
    """Three masters, each with a third of the slots, and their addresses."""
    masters = [start_master(context, stack) for _ in range(3)]
    for number, (master, port, bus) in enumerate(masters):
        master.command("CONFIG", "SET", "cluster-require-full-coverage", "no")
        master.command("CLUSTER", "ADDSLOTS", *map(str, range(number, 16384, 3)))
        masters[0][0].command("CLUSTER", "MEET", "127.0.0.1", port, bus)
    for master, _, _ in masters:
        command.wait_for(lambda: "cluster_slots_assigned:16384" in master.command("CLUSTER", "INFO"), "all slots")
        command.wait_for(lambda: "cluster_state:ok" in master.command("CLUSTER", "INFO"), "the cluster")
    return [master for master, _, _ in masters], [f"127.0.0.1:{port}" for _, port, _ in masters]


def test_each_master_of_a_cluster(context):
    with contextlib.ExitStack() as stack:
        _, addresses = start_cluster(context, stack)
        said = run(context, "doctor", "--json", "-u", f"redis+cluster://{addresses[1]}")
    assert said.returncode == 0, said
    known = servers(said)
    assert set(known) == set(addresses), said
    for server in known.values():
        assert server["state"] == "connected" and server["version"] and server["aof"] is False, said


def test_a_master_of_a_cluster_that_is_away(context):
    """The slots of the others are served on."""
    with contextlib.ExitStack() as stack:
        masters, addresses = start_cluster(context, stack)
        masters[2].process.kill()
        masters[2].process.wait()
        said = run(context, "doctor", "--json", "-u", f"redis+cluster://{addresses[1]}")
        listed = run(context, "list", "-u", f"redis+cluster://{addresses[1]}")
    assert listed.returncode == TROUBLE, listed
    assert said.returncode == BAD and not json.loads(said.stdout)["ok"], said
    assert servers(said)[addresses[2]]["state"] == "away", said
    assert trials(said)["lock"] == trials(said)["list"] == "fails", said


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
