#!/usr/bin/python3
"""Which lease outlasts what: leases of several lengths are held while servers end and others take their place.

Usage: outlast.py BELIEVER [--event WORD] [--rounds N] [--jobs N]

BELIEVER is the program believer.c. Each round makes a deployment anew, has LEASES holders of each sort renew their
leases at moments of their own, and lets the event happen once. A lease is kept if it is renewed at the server that
serves afterwards. What it prints is the table of the guide. It wants redis-py.
"""

import argparse
import concurrent.futures
import os
import random
import shutil
import tempfile
import time

import deployment
import hosts as machines
import table

SORTS = {  # what a column is called: its ttl, and how often it is renewed; 0: as by default
    "3 s": (3000, 0),
    "3 s, renewed each 0.3 s": (3000, 300),
    "5 s": (5000, 0),
    "10 s": (10000, 0),
    "20 s": (20000, 0),
    "30 s": (30000, 0),
}
LEASES = 4  # of each sort, in each round
SPREAD_S = 1.0  # in which their renewals begin
SLACK_S = 0.5  # so much later than any renewal of before

# --- What befalls ----------------------------------------------------------------------------------------------------


class One:
    """A server that keeps its data."""

    def __init__(self, hosts):
        self.hosts, self.folder = hosts, tempfile.mkdtemp(prefix="evlock-")
        hosts.add("server0")
        self.master = deployment.Server(hosts, "server0", os.path.join(self.folder, "0"), "--appendonly", "yes")

    def url(self, _kind):
        return f"redis://{self.master.address}"

    @staticmethod
    def lock_name(name):
        return name

    def end(self):
        self.hosts.end()
        shutil.rmtree(self.folder, ignore_errors=True)


def cut(of):
    of.master.side.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def restart(seconds):
    def begin(of):
        of.master.kill()
        time.sleep(seconds)
        of.master.start()

    return begin


def promote(begin):
    """It is over when another is the master."""

    def wait(of):
        begin(of)
        deployment.wait_for(of.promoted, "a promotion")

    return wait


def kill(of):
    of.master.kill()


def fail_over(of):
    of.fail_over()


def group(down_after_ms):
    return lambda hosts: deployment.Group(hosts, down_after_ms=down_after_ms)


def cluster(node_timeout_ms):
    return lambda hosts: deployment.Cluster(hosts, node_timeout_ms=node_timeout_ms)


EVENTS = (
    ("the connection is cut", One, "fixed", cut),
    ("the server is killed, and back with its data after 1 s", One, "fixed", restart(1)),
    ("the server is killed, and back with its data after 5 s", One, "fixed", restart(5)),
    ("Sentinel: a failover that is ordered", group(1000), "sentinel", promote(fail_over)),
    ("Sentinel: the master is killed, `down-after-milliseconds` 1,000", group(1000), "sentinel", promote(kill)),
    ("Sentinel: the master is killed, `down-after-milliseconds` 5,000", group(5000), "sentinel", promote(kill)),
    ("cluster: a failover that is ordered", cluster(2000), "cluster", promote(fail_over)),
    ("cluster: a master is killed, `cluster-node-timeout` 2,000", cluster(2000), "cluster", promote(kill)),
    ("cluster: a master is killed, `cluster-node-timeout` 5,000", cluster(5000), "cluster", promote(kill)),
)

# --- One round -------------------------------------------------------------------------------------------------------


def decided(holder, over):
    """True: kept; False: lost; None: not known yet."""
    if holder.lost():
        return False
    return holder.belief()[1] > over + (holder.ttl_ms / 1000 + SLACK_S) * 1e6 or None


def hold(of, kind, folder):
    holders = []
    for sort, (ttl_ms, renewal_ms) in SORTS.items():
        for number in range(LEASES):
            name = of.lock_name(f"lease-{ttl_ms}-{renewal_ms}-{number}")
            holders.append(table.Client(of, "holders", kind, name, ttl_ms, folder, [0, renewal_ms]))
            holders[-1].sort, holders[-1].ttl_ms = sort, ttl_ms
            time.sleep(random.uniform(0, 2 * SPREAD_S / len(SORTS) / LEASES))
    for holder in holders:
        deployment.wait_for(lambda holder=holder: holder.has("granted"), "a grant")
    return holders


def measure(event, number, folder):
    """By sort: how many were kept; and the seconds until another server, or the same, was there."""
    _, make, kind, befall = event
    network = machines.Hosts(number)
    of = None
    try:
        of = make(network)
        network.add("holders")
        holders = hold(of, kind, folder)
        time.sleep(random.uniform(1, 4))
        fault = table.now()
        befall(of)
        over = table.now()
        for holder in holders:
            deployment.wait_for(lambda holder=holder: decided(holder, over) is not None, "the end of a lease")
        kept = {sort: sum(bool(decided(h, over)) for h in holders if h.sort == sort) for sort in SORTS}
        for holder in holders:
            holder.end()
        return kept, (over - fault) / 1e6
    finally:
        (of or network).end()


def row(event, rounds):
    spans = sorted(span for _, span in rounds)
    cells = [str(sum(kept[sort] for kept, _ in rounds)) for sort in SORTS]
    return f"| {event[0]} | {spans[0]:.1f} to {spans[-1]:.1f} s | {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("believer")
    parser.add_argument("--event", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    table.BELIEVER.append(os.path.abspath(arguments.believer))
    machines.enter()
    folder = tempfile.mkdtemp(prefix="evlock-")
    number = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = []
        for event in EVENTS:
            for _ in range(arguments.rounds if arguments.event in event[0] else 0):
                number += 1
                own = os.path.join(folder, str(number))
                os.mkdir(own)
                runs.append((event, pool.submit(measure, event, number, own)))
        print(f"Kept of {arguments.rounds * LEASES}, in {arguments.rounds} rounds of {LEASES} leases each:\n")
        print(f"| event | over after | {' | '.join(SORTS)} |")
        print("|---|" + "---|" * (1 + len(SORTS)), flush=True)
        for event in dict.fromkeys(event for event, _ in runs):
            print(row(event, [run.result() for of, run in runs if of is event]), flush=True)
    shutil.rmtree(folder)


main()
