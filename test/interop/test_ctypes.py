"""The shared library from Python by ctypes, as a binding has it (binding.py), and what a binding takes from the headers.

Usage: test_ctypes.py LIBRARY [TEST...]. Tests that ask the headers themselves want a C compiler ($CC, or cc).
"""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from ctypes import byref, c_size_t, c_uint64, sizeof

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "test/examples"))
import harness  # noqa: E402
import binding  # noqa: E402
from binding import OK, Loop, NodeInfo, Options, Stats, zeroed  # noqa: E402
from binding import AcquireOptions, ClientOptions  # noqa: E402

LIBRARY = binding.Library(sys.argv[1])
COMPILER = shutil.which(os.environ.get("CC", "cc"))
HEADERS = ("evlock/evlock.h", "evlock/loop.h", "evlock/libevent.h")


# --- What the headers say ---


def compiler(*arguments, source):
    """What the C compiler prints when it is given this source."""
    command = [COMPILER, "-x", "c", "-std=c11", f"-I{TOP}/include", *arguments, "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def with_compiler(test):
    """The test, where there is a compiler."""
    if COMPILER:
        return test

    def skipped(context):
        print(f"# {test.__name__} is skipped: there is no C compiler")

    skipped.__name__ = test.__name__
    return skipped


def truth(expressions):
    """The values of these expressions in C, by a program that prints them."""
    prints = "\n".join(f'    printf("%lld\\n", (long long)({expression}));' for expression in expressions)
    source = f"#include <evlock/evlock.h>\n#include <stdio.h>\nint main(void) {{\n{prints}\n}}\n"
    with tempfile.TemporaryDirectory() as folder:
        compiler("-o", f"{folder}/truth", source=source)
        lines = subprocess.run([f"{folder}/truth"], capture_output=True, text=True, check=True).stdout.split()
    return dict(zip(expressions, map(int, lines)))


def declarations():
    """The headers as generators of bindings read them: preprocessed, without the system's own, and with no attribute."""
    with tempfile.TemporaryDirectory() as fakes:
        for name in ("stdbool.h", "stddef.h", "stdint.h", "event2/event.h"):
            path = pathlib.Path(fakes, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text("struct event_base;\n" if name == "event2/event.h" else "")
        include = "".join(f"#include <{name}>\n" for name in HEADERS)
        return compiler("-E", "-P", "-DEVLOCK_EXPORT=", "-nostdinc", f"-I{fakes}", source=include)


@with_compiler
def test_structs_are_as_the_header_has_them(context):
    ours = {}
    for name, kind in binding.STRUCTS.items():
        ours[f"sizeof({name})"] = sizeof(kind)
        for field, _ in kind._fields_:
            place = getattr(kind, field)
            ours[f"offsetof({name}, {field})"] = place.offset
            ours[f"sizeof((({name} *)0)->{field})"] = place.size
        assert sum(getattr(kind, field).size for field, _ in kind._fields_) == sizeof(kind), f"{name} has padding"
    assert ours == truth(ours)


@with_compiler
def test_constants_are_as_the_header_has_them(context):
    assert binding.CONSTANTS == truth(binding.CONSTANTS)
    for name in "EVLOCK_CSTRING", "EVLOCK_ALL_NODES":
        assert truth([f"{name} == (size_t)-1"]) == {f"{name} == (size_t)-1": 1}


@with_compiler
def test_no_constant_is_a_macro(context):
    macros = re.findall(r"#define (EVLOCK_\w+)(?= )", compiler("-E", "-dM", source="#include <evlock/libevent.h>\n"))
    allowed = r"EVLOCK_(CSTRING|ALL_NODES|VERSION_\w+|EXPORT|\w+_H)"
    assert "EVLOCK_CSTRING" in macros
    assert [name for name in macros if not re.fullmatch(allowed, name)] == []


@with_compiler
def test_declarations_are_plain_c(context):
    text = declarations()
    assert "evlock_client_new_libevent(" in text and "evlock_clock_us(" in text
    assert re.findall(r"\b(?:__\w+|asm|inline|static|_Static_assert|#.*)", text) == []
    system = "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n"
    compiler("-fsyntax-only", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", source=system + text)


@with_compiler
def test_enumerators_stand_in_the_declarations(context):
    blocks = re.findall(r"\benum\s*(\w*)\s*\{(.*?)\}", declarations(), re.S)
    found = {}
    for _, block in blocks:
        for enumerator in filter(None, map(str.strip, block.split(","))):
            name, value = re.fullmatch(r"(EVLOCK_\w+) = (-?\d+)", enumerator).groups()
            found[name] = int(value)
    assert {name: found.get(name) for name in binding.CONSTANTS} == binding.CONSTANTS
    statuses = dict(blocks)["evlock_status"]
    for name in re.findall(r"EVLOCK_\w+", statuses):
        assert LIBRARY.evlock_status_name(found[name]) == name.encode(), name
        assert LIBRARY.evlock_strerror(found[name]) not in (b"", LIBRARY.evlock_strerror(-1000)), name
    assert LIBRARY.evlock_status_name(-1000) == b"EVLOCK_?"


# --- Structs that Python makes ---


def loop(context, options=None):
    """A loop with a client on the test's server."""
    return Loop(LIBRARY, context.server.url, options)


def last_error():
    return LIBRARY.evlock_last_error().decode()


def given(context, options):
    """The status that the library reports for these options."""
    made = loop(context, options if isinstance(options, ClientOptions) else None)
    try:
        if isinstance(options, ClientOptions) or made.status != OK:
            return made.status
        status, lock = made.new("job", options if isinstance(options, Options) else None)
        if isinstance(options, AcquireOptions):
            status = LIBRARY.evlock_acquire(lock, byref(options), binding.Callback(), None)
        LIBRARY.evlock_free(lock)
        return status
    finally:
        made.free()


def field_byte(options, field, value):
    """Writes one byte into a field, as a language with other truths may."""
    ctypes.memset(ctypes.addressof(options) + getattr(type(options), field).offset, value, 1)
    return options


def test_options_init_zeroes(context):
    for kind in binding.OPTIONS:
        options = kind()
        ctypes.memset(byref(options), 0xFF, sizeof(kind))
        LIBRARY.evlock_options_init(byref(options), sizeof(kind))
        assert bytes(options) == bytes(zeroed(kind)), kind
        assert given(context, options) == OK, kind


def test_zero_is_the_default(context):
    for kind in binding.OPTIONS:
        assert given(context, zeroed(kind)) == OK, kind
        assert given(context, kind()) == binding.EINVAL and "size is 0" in last_error(), kind


def test_an_older_programs_struct_is_taken(context):
    for kind in binding.OPTIONS:
        options = kind()
        ctypes.memset(byref(options), 0xFF, sizeof(kind))
        older = getattr(kind, kind._fields_[2][0]).offset
        LIBRARY.evlock_options_init(byref(options), older)
        assert bytes(options)[older:] == b"\xff" * (sizeof(kind) - older), "nothing behind it is written"
        assert given(context, options) == OK, "nor read"


def test_a_newer_programs_struct_is_taken_if_its_tail_is_zero(context):
    for kind in binding.OPTIONS:

        class Newer(kind):
            _fields_ = [("novelty", c_uint64), ("safety", c_uint64)]

        assert given(context, zeroed(Newer)) == OK, kind
        for field in ("novelty", "safety"):
            assert given(context, zeroed(Newer, **{field: 1 << 63})) == binding.EVERSION, (kind, field)
            assert "does not know" in last_error()


def test_reserved_bytes_are_kept_free(context):
    for kind, field in ((ClientOptions, "reserved"), (ClientOptions, "reserved_pointer"), (Options, "reserved")):
        assert given(context, field_byte(zeroed(kind), field, 1)) == binding.EVERSION, (kind, field)


def test_a_bool_is_no_other_byte(context):
    for kind in binding.OPTIONS:
        for field in [field for field, type_ in kind._fields_ if type_ is ctypes.c_bool]:
            assert given(context, field_byte(zeroed(kind), field, 1)) == OK, (kind, field)
            for byte in (2, 0x80, 0xFF):
                assert given(context, field_byte(zeroed(kind), field, byte)) == binding.EINVAL, (kind, field)
                assert f"{field} is the byte {byte}," in last_error()


def test_an_enum_is_no_other_number(context):
    choices = [(ClientOptions, "log_level", 4), (Options, "wait", 1)]
    choices += [(AcquireOptions, "fence", 2), (AcquireOptions, "fail_when_away", 2)]
    for kind, field, last in choices:
        assert given(context, zeroed(kind, **{field: last})) == OK, (kind, field)
        for other in (last + 1, -1):
            assert given(context, zeroed(kind, **{field: other})) == binding.EINVAL, (kind, field)
            assert field in last_error() and str(other) in last_error()


# --- A client and its locks, on a loop that Python turns ---


class Ended:
    """What callbacks reported, in their order."""

    def __init__(self, loop):
        self.loop, self.reports = loop, []

    def on(self, kind):
        """A callback of this kind whose arguments are kept, but for the first, a handle, and the last."""
        return self.loop.keep(kind, lambda *arguments: self.reports.append(arguments))

    def next(self):
        """Turns the loop until there is a report; the oldest."""
        harness.wait_for(lambda: self.loop.turn() or self.reports, "a callback")
        return self.reports.pop(0)


def with_loop(test):
    """A test that is given a loop and what its callbacks report. It may raise nothing inside a callback, either."""

    def run(context):
        raised = []
        sys.unraisablehook = lambda what: raised.append(what.exc_value)
        made = loop(context)
        try:
            assert made.status == OK
            test(context, made, Ended(made))
        finally:
            made.free()
            sys.unraisablehook = sys.__unraisablehook__
        assert raised == []

    run.__name__ = test.__name__
    return run


def acquired(loop, ended, options=None, how=None):
    """A handle that holds the lock `job`."""
    status, lock = loop.new("job", options)
    assert status == OK, last_error()
    how = byref(how) if how else None
    assert LIBRARY.evlock_acquire(lock, how, ended.on(binding.Callback), 7) == OK, last_error()
    assert ended.next() == (lock.value, OK, 7)
    assert LIBRARY.evlock_is_held(lock) is True
    return lock


def release(lock, ended):
    assert LIBRARY.evlock_release(lock, ended.on(binding.Callback), None) == OK
    assert LIBRARY.evlock_is_held(lock) is False
    status = ended.next()[1]
    LIBRARY.evlock_free(lock)
    return status


def query(lock, ended, what):
    """What the server says, as a dict: the answer itself lives no longer than its callback."""
    answers = []

    def on_answer(lock, status, answer, arg):
        fields = [field for field, _ in binding.Answer._fields_ if field != "reserved"]
        answers.append((status, answer and {field: getattr(answer.contents, field) for field in fields}))

    callback = ended.loop.keep(binding.QueryCallback, on_answer)
    assert LIBRARY.evlock_query(lock, what, callback, None) == OK
    harness.wait_for(lambda: ended.loop.turn() or answers, "an answer")
    status, answer = answers[0]
    return answer if status == OK else status


@with_loop
def test_a_lease_from_its_grant_to_its_release(context, loop, ended):
    options = zeroed(Options, ttl_ms=20000, auto_renewal=True, wait=binding.WAIT_QUEUE, holder=b"python")
    lock = acquired(loop, ended, options)
    assert 10000 < LIBRARY.evlock_remaining_ms(lock) <= 20000
    size = c_size_t()
    token = ctypes.string_at(LIBRARY.evlock_token(lock, byref(size)), size.value)
    assert token.startswith(b"python") and context.server.command("GET", "job").encode() == token
    what = binding.QUERY_LOCKED | binding.QUERY_OWNED | binding.QUERY_TTL | binding.QUERY_HOLDER | binding.QUERY_WAITERS
    answer = query(lock, ended, what)
    assert 10000 < answer.pop("ttl_ms") <= 20000
    assert answer == {"locked": True, "owned": True, "holder": b"python", "holder_len": 6, "waiters": 0, "place": 0}
    for mode, ms, least, most in ((0, 10000, 20000, 30000), (1, 60000, 30000, 60000), (2, 0, 10000, 20000)):
        assert LIBRARY.evlock_extend(lock, ms, mode, ended.on(binding.Callback), None) == OK
        assert ended.next()[1] == OK
        assert least < context.server.command("PTTL", "job") <= most, mode
    assert release(lock, ended) == OK


@with_loop
def test_what_is_free_is_no_error(context, loop, ended):
    _, lock = loop.new("job", zeroed(Options, prefix=b"of-python:"))
    answer = query(lock, ended, binding.QUERY_LOCKED | binding.QUERY_TTL | binding.QUERY_HOLDER)
    assert answer == dict(locked=False, owned=False, ttl_ms=0, holder=b"", holder_len=0, waiters=0, place=0)
    assert LIBRARY.evlock_query(lock, 64, ended.on(binding.QueryCallback), None) == binding.EINVAL
    context.server.command("LPUSH", "of-python:job", "x")
    assert LIBRARY.evlock_status_name(query(lock, ended, binding.QUERY_LOCKED)) == b"EVLOCK_EWRONGTYPE"
    context.server.command("DEL", "of-python:job")
    LIBRARY.evlock_free(lock)


@with_loop
def test_a_lock_without_expiry(context, loop, ended):
    lock = acquired(loop, ended, zeroed(Options, ttl_ms=binding.NO_EXPIRY))
    assert query(lock, ended, binding.QUERY_TTL)["ttl_ms"] == binding.NO_EXPIRY
    assert LIBRARY.evlock_remaining_ms(lock) == (1 << 63) - 1
    assert release(lock, ended) == OK


@with_loop
def test_one_acquire_wants_it_otherwise(context, loop, ended):
    token = b"any\0bytes"
    how = zeroed(AcquireOptions, fence=binding.ON, max_attempts=binding.TRY, token=token, token_len=len(token))
    lock = acquired(loop, ended, None, how)
    assert LIBRARY.evlock_fence(lock) > 1 << 32
    size = c_size_t()
    assert ctypes.string_at(LIBRARY.evlock_token(lock, byref(size)), size.value) == token
    _, other = loop.new("job")
    how = zeroed(AcquireOptions, max_attempts=binding.TRY)
    assert LIBRARY.evlock_acquire(other, byref(how), ended.on(binding.Callback), None) == OK
    assert ended.next() == (other.value, binding.EHELD, None)
    LIBRARY.evlock_free(other)
    assert release(lock, ended) == OK
    for key in context.server.command("KEYS", "*"):
        context.server.command("DEL", key)  # the fence's counter


@with_loop
def test_a_loss_is_reported(context, loop, ended):
    losses = Ended(loop)
    options = zeroed(Options, ttl_ms=3000, renewal_interval_ms=100, auto_renewal=True, arg=9)
    options.on_lost = losses.on(binding.Callback)
    lock = acquired(loop, ended, options)
    context.server.command("DEL", "job")
    assert losses.next() == (lock.value, binding.ENOTOWNED, 9)
    assert LIBRARY.evlock_is_held(lock) is False and LIBRARY.evlock_remaining_ms(lock) == 0
    assert release(lock, ended) == binding.ENOTOWNED
    stats = Stats()
    assert LIBRARY.evlock_client_stats(loop.client, byref(stats), sizeof(stats)) == OK
    assert (stats.acquired, stats.failed, stats.lost_not_owned, stats.lost_expired) == (1, 0, 1, 0)
    assert sum(stats.wait) == sum(stats.hold) == 1


@with_loop
def test_a_freed_handle_is_none(context, loop, ended):
    lock = acquired(loop, ended)
    assert LIBRARY.evlock_extend(lock, 1000, binding.EXTEND_ADD, ended.on(binding.Callback), 3) == OK
    LIBRARY.evlock_free(lock)
    assert ended.next() == (None, binding.ECANCELLED, 3)


@with_loop
def test_a_body_returns_a_value(context, loop, ended):
    _, lock = loop.new("job")
    body = loop.keep(binding.Body, lambda lock, arg: arg)
    assert LIBRARY.evlock_with(lock, body, ended.on(binding.DoneCallback), 5) == OK
    assert ended.next() == (5, True, 5)
    body = loop.keep(binding.Body, lambda lock, arg: LIBRARY.evlock_release(lock, binding.Callback(), None))
    assert LIBRARY.evlock_with(lock, body, ended.on(binding.DoneCallback), None) == OK
    assert ended.next() == (OK, True, None)
    LIBRARY.evlock_free(lock)


@with_loop
def test_structs_that_the_library_fills(context, loop, ended):
    for kind, name, fill in (
        (Stats, "acquired", lambda *into: LIBRARY.evlock_client_stats(loop.client, *into)),
        (NodeInfo, "connection", lambda *into: LIBRARY.evlock_client_node(loop.client, 0, *into)),
    ):
        release(acquired(loop, ended), ended)
        memory = (ctypes.c_ubyte * 4096)(*[0xFF] * 4096)
        known = kind.from_buffer(memory)
        assert fill(byref(memory), 8) == OK
        assert getattr(known, name) > 0 and set(memory[8:]) == {0xFF}, "an older program's is not overrun"
        assert fill(byref(memory), 4000) == OK
        assert set(memory[sizeof(kind) : 4000]) == {0}, "a newer program's has zeros where nothing is known"
        assert set(memory[4000:]) == {0xFF}
    info = NodeInfo()
    assert LIBRARY.evlock_client_node(loop.client, 0, byref(info), sizeof(info)) == OK
    assert (info.connection, info.status, info.agreed) == (binding.CONNECTED, OK, True)
    assert LIBRARY.evlock_client_connection(loop.client) == binding.CONNECTED


def test_a_client_reports_and_closes(context):
    options = zeroed(ClientOptions, log_level=binding.LOG_DEBUG, arg=4)
    lines, states = [], []
    options.on_log = binding.LogCallback(lambda level, line, arg: lines.append((level, line, arg)))
    options.on_connection = binding.ConnectionCallback(lambda client, state, *rest: states.append((state, *rest)))
    made = loop(context, options)
    ended = Ended(made)
    assert made.status == OK
    acquired(made, ended)
    assert LIBRARY.evlock_client_close(made.client, ended.on(binding.ClosedCallback), 6) == OK
    assert LIBRARY.evlock_client_close(made.client, binding.ClosedCallback(), None) == binding.ECLOSED
    made.client = None
    assert ended.next() == (OK, 6)
    made.free()
    assert (binding.CONNECTED, OK, 4) in states
    assert {level for level, _, _ in lines} >= {binding.LOG_DEBUG, binding.LOG_INFO}
    assert all(arg == 4 and b"\n" not in line for _, line, arg in lines)


@with_loop
def test_another_thread_is_refused(context, loop, ended):
    lock = acquired(loop, ended)
    reports = []

    def elsewhere():
        reports.append(LIBRARY.evlock_release(lock, binding.Callback(), None))
        reports.append(LIBRARY.evlock_is_held(lock))
        reports.append(LIBRARY.evlock_client_move(loop.client))
        reports.append(LIBRARY.evlock_is_held(lock))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert reports == [binding.ETHREAD, False, OK, True]
    assert LIBRARY.evlock_is_held(lock) is False, "now this thread is another"
    assert LIBRARY.evlock_client_move(loop.client) == OK
    assert release(lock, ended) == OK


@with_loop
def test_another_thread_hands_a_call_over(context, loop, ended):
    lock = acquired(loop, ended)
    freed, statuses = [], []

    def free(client, lock):
        freed.append(threading.get_ident())
        assert client == loop.client.value
        LIBRARY.evlock_free(lock)

    posted = loop.keep(binding.PostCallback, free)
    thread = threading.Thread(target=lambda: statuses.append(LIBRARY.evlock_client_post(loop.client, posted, lock)))
    thread.start()
    thread.join()
    assert statuses == [OK] and freed == [], "not before the loop turns"
    harness.wait_for(lambda: loop.turn() or not context.keys(), "the release")
    assert freed == [threading.get_ident()]


# --- The guide ---


def test_the_guides_program_runs(context):
    programs = re.findall(r"```python\n(.*?)```", (TOP / "docs/guide.md").read_text(), re.S)
    assert len(programs) == 1
    assert programs[0].count("libevlock.so.1") == programs[0].count("redis://127.0.0.1") == 1
    source = programs[0].replace("libevlock.so.1", sys.argv[1]).replace("redis://127.0.0.1", context.server.url)
    done = subprocess.run([sys.executable, "-W", "error", "-c", source], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("held\n", "", 0), done
    assert context.server.attempts() > 1, "it was held, and was released"


harness.main(globals())
