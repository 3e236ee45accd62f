"""evlock run on a terminal, and without one: the line of progress, ctrl-C, ctrl-Z, and who is in the foreground."""

import os
import pty
import re
import select
import signal
import time

import command
from command import start
from test_signals import SAYS


class Terminal:
    """evlock as the leader of a terminal's session, or another program."""

    def __init__(self, context, *arguments, words=None):
        words = words or command.words(context, *arguments)
        self.shown = ""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.execvp(words[0], words)

    def see(self, pattern):
        """Waits until the pattern was shown."""
        end = time.monotonic() + command.PATIENCE
        while not re.search(pattern, self.shown):
            ready, _, _ = select.select([self._fd], [], [], max(0, end - time.monotonic()))
            assert ready, f"in vain waited for {pattern} in {self.shown!r}"
            self._read()
        return re.search(pattern, self.shown)

    def _read(self):
        try:
            self.shown += os.read(self._fd, 4096).decode()
        except OSError:  # how the end of a terminal is reported
            raise AssertionError(f"it ended: {self.shown!r}") from None

    def press(self, key):
        os.write(self._fd, key)

    def wait(self, how=0):
        """Its status, when it has ended or stopped."""
        return command.wait_for(lambda: self._waited(how), "the end of evlock")[0]

    def _waited(self, how):
        pid, status = os.waitpid(self.pid, how | os.WNOHANG)
        return (status,) if pid else None

    def foreground(self):
        return os.tcgetpgrp(self._fd)

    def close(self):
        os.close(self._fd)


def test_shows_its_place_in_line(context):
    holder = start(context, "hold", "--holder", "the holder\033[1m", "a")
    holder.line("")
    terminal = Terminal(context, "run", "a", "true")
    terminal.see(r"waiting for a, \S+, place 1 of 1, held by the holder\?\[1m")
    holder.process.stdin.close()
    assert os.waitstatus_to_exitcode(terminal.wait()) == 0
    assert command.wait(holder) == 0
    terminal.close()


def test_a_hold_that_comes_to_the_foreground_hears_ctrl_d(context):
    """What is typed while it is in the background is the shell's, and not its own end."""
    words = " ".join(command.words(context, "hold", "a"))
    terminal = Terminal(context, words=["bash", "--norc", "--noprofile", "-i"])
    terminal.press(f"{words} &\n".encode())
    terminal.see(r"\d{16}")
    terminal.press(b"echo ty''ped\n")
    terminal.see("typed")
    terminal.press(b"jobs\n")
    terminal.see("Running")
    terminal.press(b"fg\n")
    command.wait_for(lambda: terminal.foreground() != terminal.pid, "evlock in the foreground")
    terminal.press(b"\4")
    terminal.press(b"exit 5\n")
    assert os.waitstatus_to_exitcode(terminal.wait()) == 5
    terminal.close()


def test_is_quiet_if_it_is_to_be(context):
    command.block(context)
    quiet, piped = Terminal(context, "run", "-q", "a", "true"), start(context, "run", "a", "true")
    command.wait_for(lambda: context.server.command("ZCARD", "{a}:queue") == 2, "two in line")
    loud = Terminal(context, "run", "a", "true")
    loud.see("place 3 of 3")
    command.unblock(context)
    assert os.waitstatus_to_exitcode(loud.wait()) == 0
    assert os.waitstatus_to_exitcode(quiet.wait()) == 0 and command.wait(piped) == 0
    quiet.close()
    loud.close()
    assert not quiet.shown and not piped.errors


def test_ends_its_wait_by_the_terminal(context):
    command.block(context)
    terminal = Terminal(context, "run", "a", "true")
    terminal.see("place 1")
    terminal.press(b"\x03")
    assert os.waitstatus_to_exitcode(terminal.wait()) == -signal.SIGINT, "a shell's loop would go on"
    terminal.close()
    command.unblock(context)


def test_leaves_the_terminal_to_its_command(context):
    terminal = Terminal(context, "run", "a", *SAYS)
    pid = int(terminal.see(r"(\d+)\r\n")[1])
    groups = terminal.foreground(), os.getpgid(pid), os.getpgid(terminal.pid)
    assert groups == (pid, pid, terminal.pid), (pid, groups)
    terminal.press(b"\x03")
    terminal.see("SIGINT")
    os.kill(terminal.pid, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(terminal.wait()) == 3
    assert terminal.shown.count("SIGINT") == 1
    terminal.close()


def test_reads_the_terminal(context):
    terminal = Terminal(context, "run", "a", "sh", "-c", "read line; echo got $line")
    terminal.press(b"a line\n")
    terminal.see("got a line")
    assert os.waitstatus_to_exitcode(terminal.wait()) == 0
    terminal.close()


def test_is_stopped_and_goes_on(context):
    terminal = Terminal(context, "run", "a", *SAYS)
    pid = int(terminal.see(r"(\d+)\r\n")[1])
    terminal.press(b"\x1a")
    assert os.WIFSTOPPED(terminal.wait(os.WUNTRACED))
    command.stopped(pid)
    assert terminal.foreground() == terminal.pid
    os.kill(terminal.pid, signal.SIGCONT)
    command.wait_for(lambda: terminal.foreground() == pid, "the command in the foreground")
    terminal.press(b"\x03")
    terminal.see("SIGINT")
    os.kill(terminal.pid, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(terminal.wait()) == 3
    terminal.close()


def test_shares_its_group(context):
    terminal = Terminal(context, "run", "--foreground", "a", *SAYS)
    pid = int(terminal.see(r"(\d+)\r\n")[1])
    assert os.getpgid(pid) == terminal.pid == terminal.foreground()
    terminal.press(b"\x03")
    terminal.see("SIGINT")
    os.kill(terminal.pid, signal.SIGINT)  # the terminal sends it to both, so evlock does not pass it on
    os.kill(terminal.pid, signal.SIGUSR1)
    terminal.see("SIGUSR1")
    os.kill(terminal.pid, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(terminal.wait()) == 3
    assert terminal.shown.count("SIGINT") == 1, terminal.shown
    terminal.close()


if __name__ == "__main__":
    command.main(globals())
