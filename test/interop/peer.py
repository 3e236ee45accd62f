"""What the interop tests share: evlock's side of them, the program `peer`, steered by lines; see peer.c.

It stands on the harness of the examples' tests: each test gets a server of its own, and has to leave no key on it.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "examples"))
import harness  # noqa: E402

try:
    import redis
    import redis.asyncio
except ImportError as missing:
    print(f"this python has no redis-py 4 or later: {missing}")
    sys.exit(77)

OK, HELD, NOT_OWNED, NO_TTL = 0, -1, -5, -7
EXPIRED = -13


class Peer:
    """A process of evlock's with one handle."""

    def __init__(self, context, name, ttl=60000, renewal=False, queue=False):
        self.program = context.start()
        assert self.call("new", ttl, int(renewal), int(queue), name) == OK

    def call(self, verb, *words):
        """Makes a call; what it returned."""
        self.program.say(" ".join(map(str, (verb, 0, *words))))
        return int(self.program.line(f"returned {verb} 0").split()[3])

    def end(self, verb):
        """Waits for the end of a call: its status and value."""
        return tuple(map(int, self.program.line(f"ended {verb} 0").split()[3:]))

    def do(self, verb, *words):
        """Makes a call and waits for its end: its status."""
        status = self.call(verb, *words)
        return self.end(verb)[0] if status == OK else status

    def ask(self, verb):
        """Asks the server: the answer."""
        assert self.call(verb) == OK
        status, value = self.end(verb)
        assert status == OK, status
        return value

    def held(self):
        return self.call("held") == 1

    def export(self):
        """Gives the lease away: its token."""
        self.program.say("export 0")
        return self.program.line("token 0").split()[2]

    def lost(self):
        """Waits for the loss of the lease: the reason."""
        told = harness.wait_for(self.losses, "a loss")
        assert len(told) == 1, told
        return int(told[0].split()[2])

    def losses(self):
        return [line for line in self.program.output if line.startswith("lost 0")]


def to_its_end(test):
    """The test, and then the ends of its peers."""

    def run(context):
        test(context)
        for program in context.programs:
            assert program.end() == 0, "a peer failed"

    run.__name__ = test.__name__
    return run


def main(names):
    """Runs the tests of a file, as the examples' are run."""
    harness.main({name: to_its_end(test) for name, test in names.items() if name.startswith("test_")})
