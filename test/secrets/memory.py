"""Where in the memory of a process a secret is: in all of it, also what a core dump leaves out, and what is not to be
read. The searcher is another process, so its own copies are not found.
"""

import os
import re

PIECE = 12  # bytes: what was overwritten in part is still found
PAGE = os.sysconf("SC_PAGE_SIZE")
LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \d+ *(.*)")


class Secret:
    """A text, or bytes, of which no piece may be found."""

    def __init__(self, *forms):
        self.pieces = [form[at:at + PIECE] for form in forms for at in range(0, len(form) - PIECE + 1, PIECE)]

    def is_in(self, memory):
        return any(piece in memory for piece in self.pieces)


def areas(pid):
    """Each area of a process: where it begins and ends, and what it is."""
    begin = end = name = None
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as smaps:
        for line in smaps:
            if found := LINE.match(line):
                begin, end, name = int(found[1], 16), int(found[2], 16), found[3]
            elif line.startswith("VmFlags:"):
                flags = line.split()
                # What core dumps leave out and children find wiped has no other name.
                own = "dd" in flags and "wf" in flags
                yield begin, end, "own page" if own else os.path.basename(name) or "anonymous"


def read(memory, begin, end):
    """All bytes of an area that there are: of some, such as the kernel's own, there are none."""
    parts = []
    while begin < end:
        try:
            parts.append(os.pread(memory, end - begin, begin) or bytes(PAGE))
        except (OSError, OverflowError):
            parts.append(bytes(PAGE))
        begin += len(parts[-1])
    return b"".join(parts)


def places(pid, secret):
    """What has the secret, once for each area."""
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return sorted(name for begin, end, name in areas(pid) if secret.is_in(read(memory, begin, end)))
    finally:
        os.close(memory)


def missing():
    """Why no process can be looked into; None: it can."""
    child = os.fork()
    if child == 0:
        try:
            os.read(os.pipe()[0], 1)
        finally:
            os._exit(0)
    try:
        places(child, Secret(b"x" * PIECE))
        return None
    except OSError as error:
        return f"no process's memory can be read here: {error}"
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
