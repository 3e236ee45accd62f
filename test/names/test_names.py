#!/usr/bin/env python3
"""A host name means to evlock what it means to the system, on each loop: the addresses that evlock finds are those of
getaddrinfo(), in its order. Nameservers, resolv.conf and the hosts file are the test's own, in namespaces of its own.

Usage: test_names.py PROGRAM LOOP... - the program is `names`.
"""

import os
import socket
import subprocess
import sys
import tempfile
import unittest

from nameserver import Nameserver

INSIDE = "EVLOCK_NAMES_INSIDE"
MOST = 16  # addresses that evlock takes
FILES = {"resolv.conf": "", "hosts": "127.0.0.1 localhost\n", "nsswitch.conf": "hosts: files dns\n"}
GOOD, OTHER = "127.0.0.53", "127.0.0.54"


def enter():
    """Runs this program again in namespaces of its own, where that is allowed."""
    for how in (["unshare", "--net", "--mount"], ["unshare", "--user", "--map-root-user", "--net", "--mount"]):
        if subprocess.run([*how, "ip", "link"], capture_output=True, check=False).returncode == 0:
            os.execvpe(how[0], [*how, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})
    print("skipped: namespaces of networks and mounts are not permitted here (unshare --net --mount)")
    sys.exit(77)


def set_up(folder):
    """The loopback, and files that stand in place of the machine's."""
    missing = [name for name in FILES if not os.path.exists(f"/etc/{name}")]
    if missing:
        print(f"skipped: this machine has no /etc/{missing[0]}, in whose place the test's own could stand")
        sys.exit(77)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for name, text in FILES.items():
        write(folder, name, text)
        subprocess.run(["mount", "--bind", f"{folder}/{name}", f"/etc/{name}"], check=True)


def write(folder, name, text):
    with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
        file.write(text)


def of_the_system(host):
    """The addresses, or the error. The C library sees by itself that its files have changed."""
    try:
        return [entry[4][0] for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    except socket.gaierror as error:
        return [error.strerror]


class Names(unittest.TestCase):
    program, loops, folder = "", (), ""

    @classmethod
    def setUpClass(cls):
        cls.good, cls.other = Nameserver(GOOD), Nameserver(OTHER)

    def setUp(self):
        for server in (self.good, self.other):
            server.names, server.lower_case_alone, server.silent = {}, False, False
        self.resolv("search default.svc.example svc.example example", "options ndots:5")

    def resolv(self, *lines, servers=(GOOD,)):
        text = "\n".join([*(f"nameserver {server}" for server in servers), *lines, ""])
        write(self.folder, "resolv.conf", text)

    def found(self, loop, host):
        done = subprocess.run([self.program, loop, host], stdout=subprocess.PIPE, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0)
        return done.stdout.split("\n")[:-1]

    def means(self, host, expected):
        """evlock on each loop, as the system."""
        # In a process of its own, which reads the files as they are now.
        ask = (
            "import socket, sys\n"
            "try: print(*(i[4][0] for i in socket.getaddrinfo(sys.argv[1], None, type=socket.SOCK_STREAM)), sep='\\n')\n"
            "except socket.gaierror as error: print(error.strerror)"
        )
        words = [sys.executable, "-c", ask, host]
        system = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")[:-1]
        if expected is not None:
            self.assertEqual(sorted(system), sorted(expected))
        for loop in self.loops:
            with self.subTest(loop=loop):
                self.assertEqual(self.found(loop, host), system[:MOST])

    def test_an_absolute_name(self):
        self.good.names = {"redis.example.net": ["127.0.0.1"]}
        self.means("redis.example.net", ["127.0.0.1"])

    def test_a_dot_at_the_end_keeps_the_search_list_out(self):
        self.good.names = {"redis.example.net": ["127.0.0.1"], "redis.example.net.example": ["127.0.0.9"]}
        self.means("redis.example.net.", ["127.0.0.1"])

    def test_the_first_domain_that_has_the_name_counts(self):
        self.good.names = {"redis.svc.example": ["127.0.0.2"], "redis.example": ["127.0.0.3"]}
        self.means("redis", ["127.0.0.2"])

    def test_families_do_not_come_from_two_domains(self):
        self.good.names = {"redis.default.svc.example": ["127.0.0.1"], "redis.example": ["::1"]}
        self.means("redis", ["127.0.0.1"])
        self.good.names = {"redis.default.svc.example": ["::1"], "redis.example": ["127.0.0.1"]}
        self.means("redis", ["::1"])

    def test_both_families_of_one_name(self):
        self.good.names = {"redis.example.net": ["127.0.0.1", "::1"]}
        self.means("redis.example.net.", ["127.0.0.1", "::1"])

    def test_an_answer_that_needs_tcp(self):
        many = [f"127.0.1.{i}" for i in range(1, 61)]
        self.good.names = {"many.example.net": many}
        before = self.good.by_tcp
        self.means("many.example.net.", many)
        self.assertGreater(self.good.by_tcp, before)

    def test_a_nameserver_that_knows_lower_case_alone(self):
        self.good.names = {"redis.example.net": ["127.0.0.1"]}
        self.good.lower_case_alone = True
        self.means("redis.example.net.", ["127.0.0.1"])

    def test_a_dead_nameserver_before_a_good_one(self):
        self.good.names = {"redis.example.net": ["127.0.0.1"]}
        self.other.silent = True
        self.resolv("options timeout:1 attempts:1", servers=(OTHER, GOOD))
        asked = self.other.asked
        self.means("redis.example.net", ["127.0.0.1"])
        self.assertGreater(self.other.asked, asked)

    def test_no_nameserver_that_answers(self):
        self.good.silent = True
        self.resolv("options timeout:1 attempts:1")
        self.means("redis.example.net", None)

    def test_a_name_that_is_none(self):
        self.means("no.such.host.", None)

    def test_the_hosts_file(self):
        write(self.folder, "hosts", "127.0.0.1 localhost\n127.0.0.7 redis.example.net\n")
        self.good.names = {"redis.example.net": ["127.0.0.1"]}
        self.means("redis.example.net", ["127.0.0.7"])
        write(self.folder, "hosts", FILES["hosts"])

    def test_addresses(self):
        self.means("127.0.0.1", ["127.0.0.1"])
        self.means("::1", ["::1"])


if __name__ == "__main__":
    if INSIDE not in os.environ:
        enter()
    Names.program, *Names.loops = sys.argv[1:]
    with tempfile.TemporaryDirectory() as temporary:
        Names.folder = temporary
        set_up(temporary)
        sys.exit(not unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result.wasSuccessful())
