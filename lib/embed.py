#!/usr/bin/env python3
"""Turns Lua scripts into C: embed.py SCRIPTS.C SCRIPTS.H NAME.lua...

For each NAME.lua the C file defines its text as evl_script_NAME, and the digest by which EVALSHA calls it as
evl_script_NAME_sha. A line "--@ include OTHER.lua" stands for that file, which lies beside the script; other lines of
comments, and blank ones, stay behind.
"""

import hashlib
import pathlib
import re
import sys


INCLUDE = re.compile(r"--@ include (\S+)\n")


def text_of(script):
    text = ""
    for line in script.read_text(encoding="ascii").splitlines(keepends=True):
        include = INCLUDE.fullmatch(line)
        if include:
            text += text_of(script.with_name(include[1]))
        elif line.strip() and not line.lstrip().startswith("--"):
            text += line
    return text


def c_string(line):
    escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("\n", "\\n")
    return f'    "{escaped}"'


def main():
    source, header, *scripts = map(pathlib.Path, sys.argv[1:])
    declarations = ["/* Made from the Lua scripts by embed.py. */", "#ifndef EVL_SCRIPTS_H", "#define EVL_SCRIPTS_H", ""]
    definitions = ["/* Made from the Lua scripts by embed.py. */", '#include "scripts.h"', ""]
    for script in scripts:
        symbol = f"evl_script_{script.stem}"
        text = text_of(script)
        digest = hashlib.sha1(text.encode("ascii")).hexdigest()
        declarations += [f"extern const char {symbol}[];", f"extern const char {symbol}_sha[];"]
        definitions += [f"const char {symbol}[] ="]
        definitions += ["\n".join(map(c_string, text.splitlines(keepends=True))) + ";"]
        definitions += [f'const char {symbol}_sha[] = "{digest}";', ""]
    declarations += ["", "#endif"]
    header.write_text("\n".join(declarations) + "\n", encoding="ascii")
    source.write_text("\n".join(definitions) + "\n", encoding="ascii")


main()
