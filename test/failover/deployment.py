"""Deployments of the failover table: real servers on the hosts, and what can befall them.

Owns the servers and the folder of their files. It asks and orders by redis-py, over the servers' unix sockets, which
no parting of the network touches.
"""

import os
import shutil
import signal
import tempfile
import time

import redis
from redis.exceptions import RedisError

PATIENCE = 60  # seconds
DOWN_AFTER_MS = 1000
NODE_TIMEOUT_MS = 2000
FAILOVER_TIMEOUT_MS = 10000
NAME = "locks"


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            value = condition()
            if value:
                return value
        except (RedisError, OSError, KeyError, IndexError, TypeError):
            pass
        time.sleep(0.02)
    raise AssertionError(f"in vain waited for: {what}")


class Side(redis.Redis):
    """Asks and orders; what it is answered is left as it is for a cluster's commands."""

    RESPONSE_CALLBACKS = {k: v for k, v in redis.Redis.RESPONSE_CALLBACKS.items() if not k.startswith("CLUSTER")}


class Server:
    """One process: a server, a sentinel or a node of a cluster."""

    def __init__(self, hosts, host, folder, *options):
        self.hosts, self.host, self.folder = hosts, host, folder
        self.port, self.options = hosts.port(), options
        self.address = f"{hosts.address(host)}:{self.port}"
        os.mkdir(folder)
        with open(os.path.join(folder, "conf"), "w", encoding="ascii"):
            pass
        self.process = None
        self.side = Side(unix_socket_path=os.path.join(folder, "s"), decode_responses=True, socket_timeout=5)
        self.start()

    def start(self):
        program = os.environ.get("EVLOCK_TEST_SERVER", "redis-server")
        own = ["--port", str(self.port), "--unixsocket", "s", "--dir", self.folder, "--save", "", "--appendonly", "no"]
        more = ["--bind", self.hosts.address(self.host), "--protected-mode", "no", "--logfile", "log"]
        words = [program, os.path.join(self.folder, "conf"), *own, *more, *self.options]
        self.process = self.hosts.start(self.host, words, cwd=self.folder)
        wait_for(self.side.ping, "a server")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)


class Group:
    """A primary and its replicas on hosts of their own, and three sentinels: beside them, or elsewhere."""

    kinds = ("fixed", "sentinel", "sentinel waiting", "redis-py", "asks")

    def __init__(
        self, hosts, replicas=2, min_replicas=0, max_lag_s=10, sentinels_elsewhere=False, down_after_ms=DOWN_AFTER_MS
    ):
        self.down_after_ms = down_after_ms
        self.hosts, self.folder = hosts, tempfile.mkdtemp(prefix="evlock-")
        self.servers = [self.server(i, min_replicas, max_lag_s) for i in range(1 + replicas)]
        self.sentinels = [self.sentinel(i, sentinels_elsewhere) for i in range(3)]
        for sentinel in self.sentinels:
            self.watch(sentinel)
        wait_for(self.ready, "sentinels that know each other")
        self.master = self.servers[0]

    def server(self, number, min_replicas, max_lag_s):
        host = f"server{number}"
        self.hosts.add(host)
        options = ["--repl-diskless-sync-delay", "0"]
        if min_replicas:
            options += ["--min-replicas-to-write", str(min_replicas), "--min-replicas-max-lag", str(max_lag_s)]
        server = Server(self.hosts, host, os.path.join(self.folder, host), *options)
        if number:
            server.side.replicaof(*self.servers_first.address.split(":"))
            server.side.config_rewrite()
        else:
            self.servers_first = server
        return server

    def sentinel(self, number, elsewhere):
        host = f"sentinel{number}" if elsewhere else f"server{number}"
        if elsewhere:
            self.hosts.add(host)
        return Server(self.hosts, host, os.path.join(self.folder, f"sentinel{number}"), "--sentinel")

    def watch(self, sentinel):
        host, port = self.servers[0].address.split(":")
        sentinel.side.execute_command("SENTINEL", "MONITOR", NAME, host, port, 2)
        sentinel.side.execute_command("SENTINEL", "SET", NAME, "down-after-milliseconds", self.down_after_ms)
        sentinel.side.execute_command("SENTINEL", "SET", NAME, "failover-timeout", FAILOVER_TIMEOUT_MS)

    def ready(self):
        for sentinel in self.sentinels:
            state = sentinel.side.sentinel_master(NAME)
            slaves = sentinel.side.sentinel_slaves(NAME)
            others = sentinel.side.sentinel_sentinels(NAME)
            well = [slave for slave in slaves if slave["flags"] == "slave" and slave["master-link-status"] == "ok"]
            if state["flags"] not in ("master", {"master"}) and not state.get("is_master"):
                return False
            if len(well) != len(self.servers) - 1 or len(others) != 2:
                return False
        return True

    def promoted(self):
        """The server that a sentinel calls the primary and that says so itself, once it is another; else None."""
        for sentinel in self.sentinels:
            host, port = sentinel.side.sentinel_get_master_addr_by_name(NAME)
            for server in self.servers:
                if server is not self.master and server.address == f"{host}:{port}":
                    return server if server.side.role()[0] == "master" else None
        return None

    def url(self, kind):
        if kind == "fixed":
            return f"redis://{(self.promoted() or self.master).address}"
        return f"redis+sentinel://{','.join(sentinel.address for sentinel in self.sentinels)}/{NAME}"

    @staticmethod
    def lock_name(name):
        return name

    def fail_over(self):
        """The planned one; by a sentinel that is not on the primary's host."""
        self.sentinels[1].side.execute_command("SENTINEL", "FAILOVER", NAME)

    def hosts_with(self, alone):
        """The hosts that are cut off with the primary: with a replica, where that is not alone."""
        return ["server0"] if alone else ["server0", "server1"]

    def end(self):
        self.hosts.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class Cluster:
    """Three masters, each with its replicas, on hosts of their own; all locks of the table are on the first master."""

    kinds = ("cluster", "cluster waiting", "redis-py cluster")

    def __init__(self, hosts, replicas=1, min_replicas=0, max_lag_s=10, node_timeout_ms=NODE_TIMEOUT_MS):
        self.hosts, self.folder = hosts, tempfile.mkdtemp(prefix="evlock-")
        options = ["--cluster-enabled", "yes", "--cluster-node-timeout", str(node_timeout_ms)]
        options += ["--repl-diskless-sync-delay", "0"]
        if min_replicas:
            options += ["--min-replicas-to-write", str(min_replicas), "--min-replicas-max-lag", str(max_lag_s)]
        self.nodes = []
        for number in range(3 * (1 + replicas)):
            hosts.add(f"server{number}")
            self.nodes.append(Server(hosts, f"server{number}", os.path.join(self.folder, str(number)), *options))
        self.ids = [node.side.execute_command("CLUSTER", "MYID") for node in self.nodes]
        self.introduce()
        wait_for(self.ready, "a cluster that is well")
        self.master = self.nodes[0]

    def introduce(self):
        for number, node in enumerate(self.nodes):  # which only those can be told that know no other yet
            node.side.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for number, node in enumerate(self.nodes):
            for other in self.nodes[number + 1 :]:
                node.side.execute_command("CLUSTER", "MEET", *other.address.split(":"))
        for node in self.nodes:
            wait_for(lambda node=node: self.known(node) == set(self.ids), "nodes that know each other")
        for number, node in enumerate(self.nodes[:3]):
            node.side.execute_command("CLUSTER", "ADDSLOTSRANGE", 16384 * number // 3, 16384 * (number + 1) // 3 - 1)
        for number, node in enumerate(self.nodes[3:]):
            node.side.execute_command("CLUSTER", "REPLICATE", self.ids[number % 3])

    @staticmethod
    def rows(node):
        """The words of each line of its table."""
        lines = node.side.execute_command("CLUSTER", "NODES")
        return [line.split() for line in lines.splitlines()]

    def known(self, node):
        return {row[0] for row in self.rows(node) if "handshake" not in row[2]}

    def ready(self):
        for node in self.nodes:
            if "cluster_state:ok" not in node.side.execute_command("CLUSTER", "INFO"):
                return False
            if node.side.info("replication").get("master_link_status") == "down":
                return False
            if sum("slave" in row[2] for row in self.rows(node)) != len(self.nodes) - 3:
                return False
        return True

    def promoted(self):
        """The node that has the first slot and says so itself, once it is another; else None."""
        for node in self.nodes[1:]:
            own = [row for row in self.rows(node) if "myself" in row[2]]
            if own[0][8:] and own[0][8].startswith("0-"):
                return node
        return None

    def url(self, kind):
        return f"redis+cluster://{','.join(node.address for node in self.nodes[:3])}"

    def lock_name(self, name):
        """One whose slot is the first master's."""
        tag = next(tag for tag in range(1000) if self.master.side.execute_command("CLUSTER", "KEYSLOT", tag) < 5461)
        return f"{{{tag}}}{name}"

    def fail_over(self):
        self.nodes[3].side.execute_command("CLUSTER", "FAILOVER")

    def hosts_with(self, alone):
        return ["server0"] if alone else ["server0", "server3"]

    def end(self):
        self.hosts.end()
        shutil.rmtree(self.folder, ignore_errors=True)
