#!/usr/bin/python3
"""The failover table: what holders, contenders and others see while a deployment fails over, measured.

Usage: table.py BELIEVER [--deployment WORD] [--failover WORD] [--jobs N]

BELIEVER is the program believer.c. For each deployment and each kind of failover whose names contain the words, all
clients hold, want and take locks at the same time, in processes of their own, so they see the same failover. Each says
by CLOCK_BOOTTIME until when it believes in its lock. What it prints is Markdown; errors of clients are in FOLDER/*.err
when EVLOCK_FAILOVER_KEEP names a folder. It wants redis-py, and iproute2 for what is parted.
"""

import argparse
import concurrent.futures
import os
import shutil
import sys
import tempfile
import time

import deployment
import hosts as machines

TTLS_MS = (10000, 3000)
WAIT_MS = 4000  # failover_wait_ms: the shorter max-lag, or the node timeout, and two seconds
BEGIN_S = 30  # for the first grant, which waits too
BEFORE_S = 3  # from the last grant to the fault
PAUSE_S = 0.25  # between free locks; more is told

HERE = os.path.dirname(os.path.abspath(__file__))


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


# --- What befalls ----------------------------------------------------------------------------------------------------


class Failover:
    """A kind of failover: how it begins, how long it is watched, how it is mended."""

    def __init__(self, name, begin, seconds, mend=None, after=0, parts=False):
        self.name, self.begin, self.seconds, self.mend, self.after = name, begin, seconds, mend, after
        self.parts = parts


def join(of):
    of.hosts.join()


def part(*clients, alone=True):
    """The primary is cut off, with those clients, and maybe with a replica."""
    return lambda of: of.hosts.part([*of.hosts_with(alone), *clients])


FAILOVERS = (
    Failover("planned", lambda of: of.fail_over(), 22),
    Failover("killed", lambda of: of.master.kill(), 22),
    Failover("stopped for 8 s", lambda of: of.master.stop(), 8, lambda of: of.master.resume(), 16),
    Failover("cut off with the holder", part("holders"), 20, join, 14, True),
    Failover("cut off with the contender", part("contenders"), 20, join, 14, True),
    Failover("cut off with the holder and a replica", part("holders", alone=False), 20, join, 14, True),
)

DEPLOYMENTS = {
    "1 + 2 with a sentinel each": lambda hosts: deployment.Group(hosts),
    "1 + 2 with a sentinel each, min-replicas-to-write 1, max-lag 10": lambda hosts: deployment.Group(
        hosts, min_replicas=1
    ),
    "1 + 2 with a sentinel each, min-replicas-to-write 1, max-lag 2": lambda hosts: deployment.Group(
        hosts, min_replicas=1, max_lag_s=2
    ),
    "1 + 3, 3 sentinels elsewhere, min-replicas-to-write 1, max-lag 2": lambda hosts: deployment.Group(
        hosts, replicas=3, min_replicas=1, max_lag_s=2, sentinels_elsewhere=True
    ),
    "cluster of 3 + 3": lambda hosts: deployment.Cluster(hosts),
    "cluster of 3 + 6, min-replicas-to-write 1, max-lag 2": lambda hosts: deployment.Cluster(
        hosts, replicas=2, min_replicas=1, max_lag_s=2
    ),
}

# --- Clients ---------------------------------------------------------------------------------------------------------

WORDS = {
    "sentinel": "evlock, by the sentinels",
    "sentinel waiting": "evlock, by the sentinels, failover_wait_ms 4,000",
    "fixed": "evlock, at the primary's address",
    "redis-py": "redis-py's Sentinel and Lock",
    "asks": "in redis++'s way: asks at each connect",
    "cluster": "evlock, by the cluster",
    "cluster waiting": "evlock, by the cluster, failover_wait_ms 4,000",
    "redis-py cluster": "redis-py's RedisCluster and Lock",
}


class Client:
    """A process that believes."""

    def __init__(self, of, host, kind, name, ttl_ms, folder, more=()):
        self.path = os.path.join(folder, f"{host}-{kind}-{name}".replace(" ", "_"))
        self.began = time.monotonic()
        ways = {"redis-py": "sentinel", "asks": "asks", "redis-py cluster": "cluster"}
        program = ["/usr/bin/python3", os.path.join(HERE, "client.py"), ways[kind]] if kind in ways else [BELIEVER[0]]
        words = [*program, of.url(kind), name, str(ttl_ms)]
        if kind.endswith(" waiting"):
            words.append(str(WAIT_MS))
        words += [str(word) for word in more]
        with open(self.path, "w", encoding="utf-8") as out, open(self.path + ".err", "w", encoding="utf-8") as err:
            pipe = machines.subprocess.PIPE
            self.process = of.hosts.start(host, words, stdin=pipe, stdout=out, stderr=err)

    def events(self):
        with open(self.path, encoding="utf-8") as lines:
            return [(line.split()[0], int(line.split()[1]), line.split()[2:]) for line in lines if line.endswith("\n")]

    def has(self, word):
        return any(event[0] == word for event in self.events())

    def unfit(self):
        """Why it has had no lock for so long, or never will; "" while it may."""
        if self.has("granted") or (self.process.poll() is None and time.monotonic() < self.began + BEGIN_S):
            return ""
        with open(self.path + ".err", encoding="utf-8") as err:
            return ([""] + err.read().strip().splitlines())[-1] or "no word"

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except machines.subprocess.TimeoutExpired:
            self.process.kill()

    def belief(self):
        """From when until when it believed; nothing if it never did."""
        start = end = 0
        for word, at, rest in self.events():
            if word == "granted":
                start, end = at, int(rest[0])
            elif word == "until":
                end = int(rest[0])
            elif word in ("lost", "released"):
                end = min(end, at)
        return (start, end) if start else None

    def lost(self):
        """When it was told so."""
        return next((at for word, at, _ in self.events() if word == "lost"), None)

    def pause(self, start, end):
        """The longest one between two free locks."""
        times = [start, *(at for word, at, _ in self.events() if word == "served" and start < at < end), end]
        return max(later - sooner for sooner, later in zip(times, times[1:]))


BELIEVER = []


class Watch:
    """All clients of one kind and ttl, at one failover."""

    def __init__(self, of, kind, ttl_ms, folder):
        self.of, self.kind, self.ttl_ms, self.folder = of, kind, ttl_ms, folder
        self.name = of.lock_name(f"{kind.replace(' ', '-')}-{ttl_ms}")
        self.holder = Client(of, "holders", kind, self.name, ttl_ms, folder)
        self.contender = None
        self.free = None

    def begins(self):
        return self.holder.has("granted") or self.holder.unfit()

    def contend(self, promoted):
        """One that has but one address contends where it leads to after the failover."""
        if self.contender is None and (promoted or self.kind != "fixed") and not self.holder.unfit():
            self.contender = Client(self.of, "contenders", self.kind, self.name, self.ttl_ms, self.folder)
        if self.free is None and self.ttl_ms == TTLS_MS[0] and not self.holder.unfit():
            self.free = Client(self.of, "contenders", self.kind, self.of.lock_name(f"free-{self.kind}"), 0, self.folder)

    def end(self):
        for client in (self.contender, self.free, self.holder):
            if client:
                client.end()

    def row(self, fault, end):
        """The columns, of a failover that began then."""
        if self.holder.unfit():
            return ["–", self.holder.unfit(), "–", "–"]
        held, lost = self.holder.belief(), self.holder.lost()
        wanted = self.contender.belief() if self.contender else None
        two = max(0, min(held[1], wanted[1]) - max(held[0], wanted[0])) if wanted else 0
        pause = self.free.pause(fault, end) if self.free else None
        over = f"over after {seconds(held[1] - fault)}, not told"
        kept = "never told" if two else "kept it" if held[1] >= end else over
        return [
            f"**{seconds(two)}**" if two else "no",
            f"told lost after {seconds(lost - fault)}" if lost else kept,
            f"granted after {seconds(wanted[0] - fault)}" if wanted else "never granted",
            "" if pause is None else seconds(pause) if pause > PAUSE_S * 1e6 else "none",
        ]


def seconds(us):
    return f"{us / 1e6:.1f} s"


# --- One run ---------------------------------------------------------------------------------------------------------


def watched(of, watches, length, patient):
    """Lets so many seconds pass, in which those whose address follows the promotion start."""
    end = time.monotonic() + length
    while time.monotonic() < end:
        if patient and of.promoted():
            for watch in watches:
                watch.contend(True)
            patient = False
        time.sleep(0.02)


def measure(title, failover, number, folder):
    """The rows of one deployment's failover."""
    network = machines.Hosts(number)
    of = None
    try:
        of = DEPLOYMENTS[title](network)
        network.add("holders")
        network.add("contenders")
        watches = [Watch(of, kind, ttl, folder) for kind in of.kinds if kind in WORDS for ttl in TTLS_MS]
        for watch in watches:
            deployment.wait_for(watch.begins, f"the first grant of {watch.name}")
            watch.contend(False)
        time.sleep(BEFORE_S)
        fault = now()
        failover.begin(of)
        watched(of, watches, failover.seconds, True)
        if failover.mend:
            failover.mend(of)
            watched(of, watches, failover.after, True)
        end = now()
        for watch in watches:
            watch.end()
        return [
            [failover.name, WORDS[watch.kind], f"{watch.ttl_ms // 1000} s", *watch.row(fault, end)] for watch in watches
        ]
    finally:
        (of or network).end()


HEAD = ["failover", "client", "ttl", "two believed for", "the holder", "the contender", "others paused for"]


def show(title, rows):
    print(f"\n{title}:\n\n| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def wanted(arguments):
    """The runs, deployment by deployment."""
    for title in DEPLOYMENTS:
        if arguments.deployment in title:
            yield title, [
                failover
                for failover in FAILOVERS
                if arguments.failover in failover.name and (machines.apart() or not failover.parts)
            ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("believer")
    parser.add_argument("--deployment", default="")
    parser.add_argument("--failover", default="")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    BELIEVER.append(os.path.abspath(arguments.believer))
    machines.enter()
    folder = os.environ.get("EVLOCK_FAILOVER_KEEP") or tempfile.mkdtemp(prefix="evlock-")
    number = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = []
        for title, failovers in wanted(arguments):
            for failover in failovers:
                number += 1
                own = os.path.join(folder, str(number))
                os.mkdir(own)
                runs.append((title, pool.submit(measure, title, failover, number, own)))
        for title in dict.fromkeys(title for title, _ in runs):
            show(title, [row for of, run in runs if of == title for row in run.result()])
    if "EVLOCK_FAILOVER_KEEP" not in os.environ:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
