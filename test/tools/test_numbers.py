"""The numbers and times that options of the command have as text: the least, the greatest, and what lies beside them."""

import command
from command import run

AROUND_64_BITS = [str(2**bits + more) for bits in (31, 32, 63, 64) for more in (-1, 0, 1, 10)]
NO_NUMBERS = ["", " ", "-", "x", "1x", "0x1", "1.0", "1e1", "-1", "1,000", "nan", "9" * 400]
NO_TIMES = ["", ".", "s", "-1s", "+1s", " 1s", "1 s", "1S", "1w", "1e3", "0x10", "1.5.5s", "1s1", "nan", "inf", "9" * 400]
MOST_MS = 3653 * 24 * 3600 * 1000  # the first time that is too long: ten years


def reads(context, option, text, part=None):
    """The option's text is refused with these words, or else taken."""
    result = run(context, "run", "-n", option, text, "a", "true")
    taken = result.returncode == 0 and not result.stderr
    refused = result.returncode == 125 and part and result.stderr.startswith(f"evlock: {option}") and part in result.stderr
    assert refused if part else taken, (option, text, part, result)


def test_reads_whole_numbers(context):
    for option, long, most in ("-E", "--conflict-exit-code", 255), ("--min-replicas", "--min-replicas", 2**31 - 1):
        words = f"is no number from 0 to {most}"
        for text in [*NO_NUMBERS, *AROUND_64_BITS, "256"]:
            if not text.isdecimal() or int(text) > most:
                reads(context, long, text, words)
        reads(context, option, "0")
    reads(context, "-E", "255")


def test_reads_descriptors(context):
    for text in [*NO_NUMBERS, *AROUND_64_BITS]:
        there = text.isdecimal() and int(text) < 2**31
        reads(context, "--password-fd", text, "Bad file descriptor" if there else "is no number from 0 to 2147483647")


def test_reads_signals(context):
    for option in "--signal", "--warn-signal":
        for text in "1", "64", "TERM", "SIGTERM":
            reads(context, option, text)
        for text in [*NO_NUMBERS, *AROUND_64_BITS, "0", "65", "SIG", "SIGSIGTERM", "term"]:
            reads(context, option, text, "is no signal")


def test_reads_times(context):
    for text in NO_TIMES + [number + unit for number in AROUND_64_BITS[4:] for unit in ("d", "h")]:
        reads(context, "--ttl", text, "is no time")
    for text in "0", "0ms", "0.4ms", "0.000000001d":
        reads(context, "--ttl", text, "is too short")
        reads(context, "--kill-after", text)
    for text in "3s", "3", "3.", "3000ms", "0.05m", ".001h", "0.0001d", f"{MOST_MS - 1}ms", "3652d":
        reads(context, "--ttl", text)
    for text in f"{MOST_MS}ms", f"{MOST_MS // 1000}", "3653d", *(str(2**64 + more) + "ms" for more in (0, 1, 1000)):
        for option in "--ttl", "--wait", "--at-most", "--kill-after", "--server-wait":
            reads(context, option, text, "is no time")


def test_times_mean_what_their_units_say(context):
    for text, ms in ("7", 7000), ("7s", 7000), ("7000.4ms", 7000), ("6999.5ms", 7000), ("1.5m", 90000), ("2h", 7200000), \
            ("1d", 86400000), (f"{MOST_MS - 1}ms", MOST_MS - 1):
        result = run(context, "run", "--ttl", text, "a", "sh", "-c", "echo $EVLOCK_TTL_MS")
        assert result.stdout == f"{ms}\n", (text, ms, result)


if __name__ == "__main__":
    command.main(globals())
