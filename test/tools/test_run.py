"""evlock run: exit statuses, what the command gets, how long the lock is kept, and what stays of secrets."""

import fcntl
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

import command
from command import run, start, status

# Leaves a process behind whose first thread has ended before another: /proc calls it a zombie.
HEADLESS = [sys.executable, "-c", """
import ctypes, os, threading, time
def goes_on():
    while ') Z' not in open('/proc/self/stat').read():
        time.sleep(0.01)
    os.write(tell, str(os.getpid()).encode())
    for fd in range(tell + 1):
        os.close(fd)
    time.sleep(1000)
read, tell = os.pipe()
if os.fork() == 0:
    threading.Thread(target=goes_on).start()
    ctypes.CDLL(None).pthread_exit(None)
print(os.read(read, 20).decode())
"""]


def test_exits_as_the_command_does(context):
    assert status(context, "run", "a", "true") == 0
    assert status(context, "run", "a", "--", "sh", "-c", "exit 7") == 7
    assert status(context, "run", "a", "sh", "-c", "kill -KILL $$") == 128 + signal.SIGKILL
    assert status(context, "run", "a", "sh", "-c", "kill -USR1 $$") == 128 + signal.SIGUSR1


def test_says_why_a_command_cannot_be_run(context):
    absent = run(context, "run", "a", "/nowhere/command")
    assert absent.returncode == 127 and "/nowhere/command" in absent.stderr, absent
    folder = run(context, "run", "a", "/")
    assert folder.returncode == 126 and "Permission denied" in folder.stderr, folder


def test_is_not_had(context):
    command.block(context)
    assert status(context, "run", "-n", "a", "true") == 1
    assert status(context, "run", "-n", "-E", 9, "a", "true") == 9
    assert status(context, "run", "-w", "200ms", "a", "true") == 1
    assert status(context, "run", "-w", 0, "a", "true") == 1
    assert status(context, "run", "--poll", "-w", "0.2", "-E", 0, "a", "false") == 0
    command.unblock(context)


def test_refuses_what_makes_no_sense(context):
    def refuses(part, *words):
        result = run(context, *words)
        assert result.returncode == 125 and part in result.stderr and not result.stdout, (words, result)

    refuses("usage: evlock run", "run", "a")
    refuses("usage: evlock run", "run", "a", "--")
    refuses("there is no command 'walk'", "walk")
    refuses("is no time", "run", "--ttl", "soon", "a", "true")
    refuses("too short", "run", "--ttl", "0", "a", "true")
    refuses("unrecognized option", "run", "--no-such", "a", "true")
    refuses("see evlock run --help", "run", "--no-such", "a", "true")
    refuses("no number from 0 to 255", "run", "-E", "256", "a", "true")
    refuses("see evlock extend --help", "extend", "--min-replicas", "1", "--token-fd", "0", "a")
    refuses("usage: evlock completion", "completion")
    refuses("exclude each other", "run", "-n", "-w", "1s", "a", "true")
    refuses("exclude each other", "run", "--queue", "--poll", "a", "true")
    refuses("--kill-after is 900 ms", "run", "--ttl", "1s", "-k", "900ms", "a", "true")
    refuses("not longer than --kill-after", "run", "--at-most", "500ms", "-k", "500ms", "a", "true")
    refuses("is no signal", "run", "-s", "HALLO", "a", "true")
    refuses("512 bytes", "run", "x" * 600, "true")
    refuses("queue", "run", "-u", context.server.url, "-u", "redis://127.0.0.1:1", "--queue", "a", "true")


def test_needs_a_server(context):
    absent = run(context, "run", "-u", context.server.url + ".absent", "a", "true")
    assert absent.returncode == 125 and "No such file or directory" in absent.stderr, absent
    assert absent.stderr.count("\n") == 1, absent
    environment = {name: value for name, value in os.environ.items() if name != "EVLOCK_URL"}
    none = subprocess.run([context.program, "run", "a", "true"], env=environment, capture_output=True, text=True,
                          timeout=command.PATIENCE, check=False)
    assert none.returncode == 125 and "which server?" in none.stderr, none


def test_waits_for_a_server_if_it_is_to(context):
    late = context.server.path + ".late"
    waiting = start(context, "run", "-v", "-u", "unix://" + late, "--server-wait", "60s", "a", "echo", "ran")
    command.wait_for(lambda: waiting.errors, "a word about the server")
    os.symlink(context.server.path, late)
    assert waiting.line("ran") and command.wait(waiting) == 0
    never = context.server.path + ".never"
    refused = run(context, "run", "-u", "unix://" + never, "--server-wait", "200ms", "a", "true")
    assert refused.returncode == 125 and f"({never}: No such file or directory)" in refused.stderr, refused


def test_tells_the_command_of_its_lock(context):
    result = run(context, "run", "--fence", "--holder", "me", "--ttl", "5s", "a", "env")
    told = dict(line.split("=", 1) for line in result.stdout.splitlines() if line.startswith("EVLOCK_"))
    assert told["EVLOCK_NAME"] == "a" and told["EVLOCK_HELD"] == "1" and told["EVLOCK_HOLDER"] == "me", told
    assert told["EVLOCK_TTL_MS"] == "5000" and int(told["EVLOCK_FD"]) >= 3, told
    later = run(context, "run", "--fence", "a", "sh", "-c", "echo $EVLOCK_FENCE").stdout
    assert int(later) > int(told["EVLOCK_FENCE"]) > 0
    assert run(context, "run", "a", "sh", "-c", "echo .$EVLOCK_FENCE").stdout == ".\n"
    within = shlex.join(command.words(context, "run", "b", "sh", "-c", "echo .$EVLOCK_FENCE"))
    assert run(context, "run", "--fence", "a", "sh", "-c", within).stdout == ".\n", "it is of the lock around this"


def test_is_held_while_the_command_runs(context):
    program = start(context, "run", "--holder", "me", "a", *command.STAYS)
    program.line("")
    assert command.held(context)
    assert context.server.command("GET", "a").startswith("me"), "it says who holds it"
    program.signal(signal.SIGTERM)
    assert command.wait(program) == 128 + signal.SIGTERM
    assert not command.held(context)


def test_passes_input_and_output_on(context):
    result = run(context, "run", "a", "sh", "-c", "cat; echo wrong >&2", input="some text")
    assert (result.stdout, result.stderr) == ("some text", "wrong\n"), result


def test_passes_descriptors_and_the_environment_on(context):
    reading, writing = os.pipe()
    counts = "print(os.environ['OTHER'], len(os.listdir('/proc/self/fd')))"
    script = f"import os; os.write({writing}, b'through '); {counts}"
    shows, how = [sys.executable, "-c", script], {"pass_fds": [writing], "env": {**os.environ, "OTHER": "kept"}}
    alone = subprocess.run(shows, capture_output=True, stdin=subprocess.DEVNULL, text=True, check=True, **how).stdout
    how["env"]["EVLOCK_URL"] = context.server.url
    under = run(context, "run", "a", *shows, **how).stdout
    os.close(writing)
    assert os.read(reading, 100) == b"through through "
    os.close(reading)
    assert under.startswith("kept") and int(under.split()[1]) == int(alone.split()[1]) + 1, "but for EVLOCK_FD"


def test_outlives_who_reads_its_words(context):
    reading, writing = os.pipe()
    words = command.words(context, "run", "-v", "a", "sh", "-c", "exit 6")
    program = subprocess.Popen(words, stderr=writing, stdin=subprocess.DEVNULL)
    os.close(writing)
    os.close(reading)
    assert program.wait(timeout=command.PATIENCE) == 6


def test_needs_no_standard_descriptors(context):
    words = " ".join(command.words(context, "run", "-vv", "a", "true"))
    closed = subprocess.run(["sh", "-c", words + " <&- >&- 2>&-"], timeout=command.PATIENCE, check=False)
    assert closed.returncode == 0


def test_is_in_trouble_where_descriptors_run_out(context):
    """With each limit of them: 1 would say that another holds the lock."""
    words = shlex.join(command.words(context, "run", "a", "true"))
    statuses = []
    for most in range(16, 4, -1):
        limited = ["sh", "-c", f"ulimit -n {most}; exec {words}"]
        statuses.append(subprocess.run(limited, capture_output=True, timeout=command.PATIENCE, check=False).returncode)
    assert statuses == sorted(statuses) and set(statuses) == {0, 125}, statuses
    assert not command.held(context)


def test_gives_the_command_signals_as_they_were(context):
    shows = ["sh", "-c", "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status"]
    before = subprocess.run(shows, capture_output=True, text=True, check=True).stdout
    assert run(context, "run", "a", *shows).stdout == before


def test_refuses_to_wait_for_itself(context):
    inside = run(context, "run", "a", context.program, "run", "a", "true")
    assert inside.returncode == 125 and "held around this already" in inside.stderr, inside
    inside = run(context, "run", "a", context.program, "run", "b", context.program, "run", "-w", "5s", "a", "true")
    assert inside.returncode == 125 and "held around this already" in inside.stderr, inside
    assert status(context, "run", "a", context.program, "run", "b", "true") == 0
    assert status(context, "run", "a", context.program, "run", "--nested", "--prefix", "x:", "a", "true") == 0


def test_keeps_the_lock_for_at_least_so_long(context):
    begin = time.monotonic()
    assert status(context, "run", "--at-least", "60s", "a", "sh", "-c", "exit 3") == 3
    assert time.monotonic() - begin < 30, "it waits, though the server can keep the lock"
    left = context.server.command("PTTL", "a")
    assert 10000 < left <= 60000, left
    assert status(context, "run", "-n", "a", "true") == 1
    command.unblock(context)
    assert status(context, "run", "--at-least", "500ms", "a", "true") == 0
    assert not command.held(context), "a short rest is waited for"


def test_keeps_the_lock_though_it_is_ended(context):
    """The rest is shorter than what a lease needs to end its command, so evlock waits for it."""
    program = start(context, "run", "--at-least", "4s", "-k", "4500ms", "a", "echo", "ran")
    program.line("ran")
    command.wait_for(lambda: not command.children(program.process.pid), "the end of the command")
    program.signal(signal.SIGTERM)
    assert command.wait(program) == 128 + signal.SIGTERM
    assert command.held(context)
    command.unblock(context)


def test_keeps_the_lock_though_it_is_ended_while_the_server_is_slow(context):
    """The rest is shorter than the lease, and a lease that is to be shortened cannot be left before the answer."""
    program = start(context, "run", "--at-least", "60s", "--ttl", "100s", "a", "sh", "-c", "echo ran; read line")
    program.line("ran")
    context.server.freeze()
    program.say("end")
    command.wait_for(lambda: not command.children(program.process.pid), "the end of the command")
    program.signal(signal.SIGTERM)
    command.wait_for(lambda: not command.pending(program.process.pid), "a look at the signal")
    context.server.thaw()
    assert command.wait(program) == 128 + signal.SIGTERM
    assert 30000 < context.server.command("PTTL", "a") <= 60000
    command.unblock(context)


def test_says_that_the_rest_was_lost(context):
    """It cannot be left to a server that is away, whether or not a signal asks for its end."""
    for signals in [signal.SIGTERM], []:
        loses_its_rest(context, signals)


def loses_its_rest(context, signals):
    program = start(context, "run", "--at-least", "60s", "--ttl", "2s", "a", "sh", "-c", "echo ran; read line")
    program.line("ran")
    context.server.freeze()
    program.say("end")
    command.wait_for(lambda: not command.children(program.process.pid), "the end of the command")
    for number in signals:
        program.signal(number)
    assert command.wait(program) == 124
    assert any("lost a" in line for line in program.errors), program.errors
    context.server.thaw()


def test_keeps_the_lock_though_its_command_took_too_long(context):
    result = run(context, "run", "--at-least", "60s", "--at-most", "1s", "-k", "500ms", "a", "sleep", "1000")
    assert result.returncode == 124 and "--at-most" in result.stderr, result
    left = context.server.command("PTTL", "a")
    assert 20000 < left <= 59500, left
    command.unblock(context)


def test_ends_the_command_after_at_most_so_long(context):
    result = run(context, "run", "--at-most", "1s", "-k", "500ms", "a", "sleep", "1000")
    assert result.returncode == 124 and "--at-most" in result.stderr and "lost" not in result.stderr, result
    assert not command.held(context)


def test_ends_what_forks_and_flees_all_the_time(context):
    for number in range(3):
        kept = os.path.join(context.server.folder, f"kept{number}")
        result = run(context, "run", "--at-most", "200ms", "-k", "50ms", "a", os.environ["EVLOCK_TEST_HOPPER"], kept)
        assert result.returncode in (0, 124), result  # its first process ended at once; the rest may take its time
        with open(kept, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_ends_what_the_command_leaves_behind(context):
    result = run(context, "run", "a", "sh", "-c", "sleep 1000 & echo $!; (setsid sleep 1000 & echo $!); exit 4")
    assert result.returncode == 4
    assert not any(map(command.lives, map(int, result.stdout.split())))


def test_ends_threads_that_outlive_their_first(context):
    result = run(context, "run", "a", *HEADLESS)
    threads = pathlib.Path(f"/proc/{int(result.stdout)}/task")
    assert result.returncode == 0
    assert not threads.exists() or len(list(threads.iterdir())) == 1, "it works on without the lock"


def test_takes_no_descriptor_of_the_callers(context):
    """Its own comes behind those that the command gets from others."""
    script = '"$0" run a sh -c \'read line <&4; echo "$EVLOCK_FD $line"\' 3</dev/null 4</dev/fd/0'
    result = run(context, "run", "--nested", "a0", "sh", "-c", script, os.path.abspath(context.program), input="four\n")
    assert result.stdout == "5 four\n", result


def test_leaves_what_it_is_to_leave(context):
    script = "sleep 1000 >/dev/null 2>&1 & echo $!"
    result = run(context, "run", "--leave", "a", "sh", "-c", script)
    assert result.returncode == 0 and command.lives(int(result.stdout))
    os.kill(int(result.stdout), signal.SIGKILL)


def test_what_is_left_may_run_under_the_name_again(context):
    folder = context.server.folder
    left = 'exec 1>&- 2>&-; cd "$1"; until [ -e done ]; do sleep 0.02; done; "$0" run -n a touch ran; touch "ended $?"'
    words = ["sh", "-c", f"({left}) &", os.path.abspath(context.program), folder]
    result = run(context, "run", "--leave", "a", *words)
    assert result.returncode == 0, result
    with open(os.path.join(folder, "done"), "w", encoding="ascii"):
        pass
    ended = lambda: [name for name in os.listdir(folder) if name.startswith("ended")]
    command.wait_for(ended, "the run of what was left")
    assert ended() == ["ended 0"] and os.path.exists(os.path.join(folder, "ran"))


def test_spares_what_was_there_before(context):
    """A shell that ends by evlock, as sh -c does, leaves it children that are none of evlock's."""
    words = " ".join(command.words(context, "run", "a", "true"))
    result = subprocess.run(["sh", "-c", f"sleep 1000 >/dev/null 2>&1 & echo $!; exec {words}"], capture_output=True,
                            text=True, timeout=command.PATIENCE, check=False)
    assert result.returncode == 0 and command.lives(int(result.stdout)), result
    os.kill(int(result.stdout), signal.SIGKILL)


def test_lists_its_options(context):
    listed = run(context, "run", "--help")
    assert listed.returncode == 0 and "--kill-after TIME" in listed.stdout and not listed.stderr
    assert run(context, "help", "run").stdout == listed.stdout
    assert "  run " in run(context, "--help").stdout
    assert run(context, "--version").stdout.startswith("evlock ")
    with open("/dev/full", "w", encoding="utf-8") as full:
        words = command.words(context, "--help")
        assert subprocess.run(words, stdout=full, stderr=subprocess.DEVNULL, check=False).returncode == 125


def test_takes_secrets_from_anywhere_but_arguments(context):
    server = context.server
    server.command("ACL", "SETUSER", "bob", "on", ">secret", "~*", "&*", "+@all")
    secret = pathlib.Path(server.folder) / "secret"
    secret.write_text("secret\n", encoding="utf-8")
    line = ["run", "--user", "bob", "a", "sh", "-c", "tr '\\0' ' ' </proc/$PPID/cmdline"]

    def passes(*options, **how):
        result = run(context, line[0], *options, *line[1:], **how)
        assert result.returncode == 0 and "bob" in result.stdout and "secret\n" not in result.stdout, result

    passes("--password-file", secret)
    with open(secret, encoding="utf-8") as opened:
        passes("--password-fd", opened.fileno(), pass_fds=[opened.fileno()])
    command.words(context)
    passes(env={**os.environ, "EVLOCK_PASSWORD": "secret"})
    passes(env={**os.environ, "EVLOCK_PASSWORD_FILE": str(secret)})
    wrong = run(context, *line, env={**os.environ, "EVLOCK_PASSWORD": "guess"})
    assert wrong.returncode == 125 and "guess" not in wrong.stderr and "authentication" in wrong.stderr, wrong
    told = run(context, "run", "-u", "redis://bob:secret@localhost", "a", "true")
    assert told.returncode == 125 and "for all to read" in told.stderr and "secret@" not in told.stderr, told


def test_holds_a_quorum(context):
    others = [command.harness.Server(os.environ.get("EVLOCK_TEST_SERVER", "redis-server")) for _ in range(2)]
    urls = [word for server in [context.server, *others] for word in ("-u", server.url)]
    shows = "import os; print(os.environ['EVLOCK_FENCE'])"
    try:
        wanted = ["--max-ttl", "2s", "--ttl", "1s", "--fence"]
        result = run(context, "run", *urls, *wanted, "a", "python3", "-c", shows)
        assert result.returncode == 0 and int(result.stdout) > 0, result
    finally:
        for server in others:
            server.end()


def test_warns_of_a_key_that_lasts_for_ever_in_plain_words(context):
    """The library has no names of C options for those who read it here."""
    program = start(context, "run", "--ttl", "1s", "a", *command.STAYS)
    program.line("")
    context.server.command("PERSIST", "a")
    command.wait_for(lambda: any("no expiry" in line for line in program.errors), "the warning")
    assert not any("EVLOCK_" in line for line in program.errors), program.errors
    program.signal(signal.SIGTERM)
    command.wait(program)


if __name__ == "__main__":
    command.main(globals())
