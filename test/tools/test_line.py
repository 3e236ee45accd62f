"""A thousand runs at one lock, forty at a time: none is beside another, and all get through. EVLOCK_TEST_RUNS is another
number of runs."""

import concurrent.futures
import os
import pathlib

import command

RUNS, AT_A_TIME = int(os.environ.get("EVLOCK_TEST_RUNS", "1000")), 40


def test_a_thousand_runs(context):
    counter = pathlib.Path(context.server.folder) / "counter"
    counter.write_text("0\n", encoding="utf-8")
    adds = f"read n <{counter}; echo $((n + 1)) >{counter}"
    words = command.words(context, "run", "line", "sh", "-c", adds)

    def one(_):
        return command.subprocess.run(words, timeout=command.PATIENCE * 2, check=False).returncode

    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        assert set(pool.map(one, range(RUNS))) == {0}
    assert int(counter.read_text(encoding="utf-8")) == RUNS


if __name__ == "__main__":
    command.main(globals())
