"""Hosts of the failover table: a network namespace each, between which the network can be parted, silently.

Where the system lets nobody make namespaces, all hosts are this one, and cannot be parted. Owns namespaces and the
processes on them; all end with end(). It needs iproute2 and util-linux, and no rights: it has a user namespace.
"""

import os
import signal
import socket
import subprocess
import sys

INSIDE = "EVLOCK_FAILOVER_INSIDE"


def enter():
    """Runs this program again in namespaces of its own, where that is allowed."""
    if INSIDE in os.environ:
        return
    for how in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
        if subprocess.run([*how, "ip", "link"], capture_output=True, check=False).returncode == 0:
            os.execvpe(how[0], [*how, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})


def apart():
    """Whether the hosts are more than names."""
    return INSIDE in os.environ


def run(*words):
    subprocess.run(words, check=True)


def free_port():
    """A node of a cluster has a second one, that and 10,000."""
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            if one.getsockname()[1] < 55000:
                return one.getsockname()[1]


class Hosts:
    """Made for one deployment."""

    def __init__(self, number):
        self.apart = apart()
        self.number = number  # tells networks apart that are used at the same time
        self.names = {}  # of a host: its number
        self.keepers = {}  # processes that keep the namespaces
        self.processes = []
        self.parted = False
        if self.apart:
            for side in "ab":
                run("ip", "link", "add", self.bridge(side), "type", "bridge")
                run("ip", "link", "set", self.bridge(side), "up")

    def bridge(self, side):
        return f"b{self.number}{side}"

    def wire(self, name):
        return f"w{self.number}x{self.names[name]}"

    def address(self, name):
        return f"10.{self.number}.0.{self.names[name] + 1}" if self.apart else "127.0.0.1"

    def port(self):
        """One for a server; each is used once."""
        return free_port()

    def add(self, name):
        self.names[name] = len(self.names)
        if not self.apart:
            return
        keeper = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep 100000"], stdout=subprocess.PIPE)
        keeper.stdout.readline()
        self.keepers[name] = keeper
        wire = self.wire(name)
        run("ip", "link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", str(keeper.pid))
        run("ip", "link", "set", wire, "master", self.bridge("a"), "up")
        inside = ["nsenter", f"--net=/proc/{keeper.pid}/ns/net"]
        run(*inside, "ip", "address", "add", self.address(name) + "/24", "dev", "eth0")
        run(*inside, "ip", "link", "set", "eth0", "up")
        run(*inside, "ip", "link", "set", "lo", "up")

    def start(self, name, words, **options):
        """A process on a host."""
        if self.apart:
            words = ["nsenter", f"--net=/proc/{self.keepers[name].pid}/ns/net", *words]
        self.processes.append(subprocess.Popen(words, **options))
        return self.processes[-1]

    def part(self, names):
        """From now on nothing passes between these hosts and the others, and no end is told."""
        for name in names:
            run("ip", "link", "set", self.wire(name), "master", self.bridge("b"))
        self.parted = True

    def join(self):
        for name in self.names if self.parted else ():
            run("ip", "link", "set", self.wire(name), "master", self.bridge("a"))
        self.parted = False

    def end(self):
        for process in [*self.processes, *self.keepers.values()]:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
        for side in "ab" if self.apart else ():
            run("ip", "link", "delete", self.bridge(side))
