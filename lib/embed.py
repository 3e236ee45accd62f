#!/usr/bin/env python3
"""Turns Lua scripts into C: embed.py SCRIPTS.C SCRIPTS.H NAME=NUMBER... NAME.lua...

The C file defines evl_scripts: for each NAME.lua its name, its text, and the digest by which EVALSHA calls it, at
SCRIPT_NAME. A line "--@ include OTHER.lua" stands for that file, which lies beside the script; other lines of comments,
and blank ones, stay behind. "@NAME@" in a script stands for the number, which is EVL_NAME in C.
"""

import hashlib
import pathlib
import re
import sys


INCLUDE = re.compile(r" *--@ include (\S+)\n")
CONSTANT = re.compile(r"@(\w+)@")


def text_of(script, constants):
    text = ""
    for line in script.read_text(encoding="ascii").splitlines(keepends=True):
        include = INCLUDE.fullmatch(line)
        if include:
            text += text_of(script.with_name(include[1]), constants)
        elif line.strip() and not line.lstrip().startswith("--"):
            text += CONSTANT.sub(lambda name: constants[name[1]], line)
    return text


def c_string(line):
    escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("\n", "\\n")
    return f'    "{escaped}"'


def header_of(constants, scripts):
    lines = ["/* Made from the Lua scripts by embed.py. */", "#ifndef EVL_SCRIPTS_H", "#define EVL_SCRIPTS_H", ""]
    lines += [f"#define EVL_{name} {number}" for name, number in constants.items()]
    lines += ["", "struct script {", "    const char *name;", "    const char *text;", "    const char *sha;", "};", ""]
    lines += ["enum {"]
    lines += [f"    SCRIPT_{script.stem.upper()}," for script in scripts]
    lines += ["};", "", "extern const struct script evl_scripts[];", "extern const unsigned evl_script_count;", ""]
    return lines + ["#endif"]


def source_of(constants, scripts):
    lines = ["/* Made from the Lua scripts by embed.py. */", '#include "scripts.h"', ""]
    # The standard promises 4,095 bytes of a string; compilers take any number.
    lines += ['#pragma GCC diagnostic ignored "-Woverlength-strings"', ""]
    lines += ["const struct script evl_scripts[] = {"]
    for script in scripts:
        text = text_of(script, constants)
        digest = hashlib.sha1(text.encode("ascii")).hexdigest()
        lines += [f'    {{"{script.stem}",', "\n".join(map(c_string, text.splitlines(keepends=True))) + ","]
        lines += [f'    "{digest}"}},']
    return lines + ["};", f"const unsigned evl_script_count = {len(scripts)};"]


def main():
    source, header, *rest = sys.argv[1:]
    constants = dict(word.split("=") for word in rest if "=" in word)
    scripts = [pathlib.Path(word) for word in rest if "=" not in word]
    pathlib.Path(header).write_text("\n".join(header_of(constants, scripts)) + "\n", encoding="ascii")
    pathlib.Path(source).write_text("\n".join(source_of(constants, scripts)) + "\n", encoding="ascii")


main()
