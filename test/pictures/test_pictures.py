"""The pictures of docs/pictures are what their programs draw today. A sequence is compared by its parties, its messages
and its marks, since each run has other times. A chart and the house are compared byte by byte, since a table has them.

Usage: test_pictures.py ACTOR FENCE DOCS
"""

import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
ACTOR, FENCE, DOCS = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
SEQUENCES = ["handoff", "late", "life", "quorum"]
NAMES = {"svg": "http://www.w3.org/2000/svg"}


def drawn(folder, program, *arguments):
    done = subprocess.run([HERE / program, *arguments, folder], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return folder


def structure(path):
    """How often each mark and each word stands in a picture, without its times, its fences and its lengths."""
    root = xml.etree.ElementTree.parse(path).getroot()
    assert "prefers-color-scheme: dark" in root.find("svg:style", NAMES).text, f"{path} is for light screens alone"
    count = collections.Counter()
    for element in root.iter():
        kind = element.get("class", "")
        if "faint" not in kind:
            count[element.tag.split("}")[1], kind, re.sub(r"…\d+", "…", element.text or "").strip()] += 1
    return count


def test_sequences(folder):
    drawn(folder, "scenes", ACTOR, FENCE)
    for name in SEQUENCES:
        kept, now = (structure(path / f"{name}.svg") for path in (DOCS / "pictures", folder))
        assert kept == now, f"{name} differs: {kept - now} is gone, {now - kept} is new"


def test_a_picture_tells_its_story(folder):
    words = [element.text for element in xml.etree.ElementTree.parse(folder / "late.svg").getroot().iter()]
    fences = [int(word.split("…")[1]) for word in words if word and word.startswith("fence …")]
    writes = [int(word.split("…")[1]) for word in words if word and word.startswith("write, fence …")]
    assert len(fences) == 2 and sorted(writes) == sorted(fences), (fences, writes)
    assert "refused: a greater fence has written" in words


def test_charts(folder):
    drawn(folder, "charts", DOCS / "performance.md")
    charts = [path.name for path in folder.glob("*.svg") if path.stem not in SEQUENCES]
    assert len(charts) == 5, charts
    for name in charts:
        kept = (DOCS / "pictures" / name).read_text(encoding="utf-8")
        assert kept == (folder / name).read_text(encoding="utf-8"), f"{name} differs from what docs/performance.md says"


def test_house(folder):
    drawn(folder, "house", DOCS.parent / "lib/floors")
    kept, now = ((path / "house.svg").read_text(encoding="utf-8") for path in (DOCS / "pictures", folder))
    assert kept == now, "house.svg differs from what lib/floors says: `meson compile pictures` draws it anew"


def test_all_are_drawn_and_shown(folder):
    pages = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    for path in (DOCS / "pictures").iterdir():
        assert (folder / path.name).exists(), f"nothing draws {path}"
        assert f"(pictures/{path.name})" in pages, f"no page shows {path}"


def main():
    if not shutil.which("redis-server"):
        print("no redis-server")
        sys.exit(77)
    tests = [test_sequences, test_a_picture_tells_its_story, test_charts, test_house, test_all_are_drawn_and_shown]
    failed = 0
    print(f"1..{len(tests)}")
    with tempfile.TemporaryDirectory(prefix="evlock-") as folder:
        for number, test in enumerate(tests, 1):
            try:
                test(pathlib.Path(folder))
                print(f"ok {number} - {test.__name__[5:]}")
            except AssertionError as error:
                failed += 1
                print(f"# {error}\nnot ok {number} - {test.__name__[5:]}")
    sys.exit(failed > 0)


main()
