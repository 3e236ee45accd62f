"""evlock completion: bash and zsh know each command and each option that the help knows."""

import re
import shutil
import subprocess

import command
from command import run

BASH = """
source "$1"
compopt() { :; }
shift
COMP_WORDS=(evlock "$@")
COMP_CWORD=$#
_evlock
printf '%s\\n' "${COMPREPLY[@]}"
"""


def commands(context):
    names = re.findall(r"^  (\w+) ", run(context, "--help").stdout, re.MULTILINE)
    assert len(names) > 10, names
    return names


def options(context, name):
    """The options that the help has, as they are written, and those that want a value."""
    rows = re.findall(r"^  (?:(-\w),|   ) (--[\w-]+)( [A-Z]+)?  ", run(context, "help", name).stdout, re.MULTILINE)
    return {word for letter, long, _ in rows for word in (letter, long) if word} | {"-h", "--help"}, {
        long: value.strip() for _, long, value in rows if value
    }


def script(context, shell):
    path = f"{context.server.folder}/{shell}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(run(context, "completion", shell).stdout)
    return path


def complete(path, *words, cwd=None):
    """What bash offers for the last of these words."""
    said = subprocess.run(["bash", "-c", BASH, "bash", path, *words], capture_output=True, text=True, cwd=cwd, check=False)
    assert not said.stderr, said
    return set(said.stdout.split())


def test_bash_completes_commands(context):
    path = script(context, "bash")
    assert complete(path, "") == set(commands(context)) | {"help", "completion", "--help", "--version"}
    assert complete(path, "help", "") == set(commands(context))
    assert complete(path, "acq") == {"acquire"}
    assert complete(path, "completion", "") == {"bash", "zsh"}


def test_bash_completes_each_option(context):
    path = script(context, "bash")
    for name in commands(context):
        known, _ = options(context, name)
        assert complete(path, name, "-") == known, name
    assert complete(path, "acquire", "--token") == {"--token-file", "--token-fd"}


def test_bash_completes_values(context):
    path = script(context, "bash")
    for name in commands(context):
        for option, value in options(context, name)[1].items():
            found = complete(path, name, option, "", cwd=context.server.folder)
            assert ("bash" in found) == (value == "FILE"), (name, option, found)
            assert not complete(path, name, option, "-") or value == "FILE", (name, option)


def test_bash_completes_the_command_that_is_run(context):
    path = script(context, "bash")
    assert "printf" in complete(path, "run", "--ttl", "10s", "a", "print")
    assert "printf" in complete(path, "run", "a", "--", "print") or "printf" in complete(path, "run", "--", "a", "print")
    assert complete(path, "run", "a", "sh", "-") == set()
    assert "--json" in complete(path, "status", "a", "--j")


def test_zsh_knows_each_option(context):
    path = script(context, "zsh")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert text.startswith("#compdef evlock\n")
    for name in commands(context):
        part = re.search(rf"^        {name}\)\n(.*?)^            ;;$", text, re.MULTILINE | re.DOTALL)[1]
        known, values = options(context, name)
        assert set(re.findall(r"^            '\*?(--?[\w-]+)\[", part, re.MULTILINE)) == known - {"-h", "--help"}, name
        for option, value in values.items():
            end = f"]:{value}:" + ("_files" if value == "FILE" else "")
            assert re.search(rf"^            '\*?{option}\[.*{re.escape(end)}'", part, re.MULTILINE), (name, option)
    if shutil.which("zsh"):
        assert subprocess.run(["zsh", "-n", path], check=False).returncode == 0


def test_other_shells_are_refused(context):
    assert run(context, "completion", "fish").returncode == 125
    assert run(context, "completion").returncode == 125


if __name__ == "__main__":
    command.main(globals())
