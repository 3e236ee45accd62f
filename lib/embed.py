#!/usr/bin/env python3
"""Turns Lua scripts into C: embed.py SCRIPTS.C SCRIPTS.H NAME.lua...

For each NAME.lua the C file defines its text, word for word, as evl_script_NAME, and the digest by which EVALSHA calls
it as evl_script_NAME_sha. It changes nothing in a script.
"""

import hashlib
import pathlib
import sys


def c_string(line):
    escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("\n", "\\n")
    return f'    "{escaped}"'


def main():
    source, header, *scripts = map(pathlib.Path, sys.argv[1:])
    declarations = ["/* Made from the Lua scripts by embed.py. */", "#ifndef EVL_SCRIPTS_H", "#define EVL_SCRIPTS_H", ""]
    definitions = ["/* Made from the Lua scripts by embed.py. */", '#include "scripts.h"', ""]
    for script in scripts:
        symbol = f"evl_script_{script.stem}"
        text = script.read_text(encoding="ascii")
        digest = hashlib.sha1(text.encode("ascii")).hexdigest()
        declarations += [f"extern const char {symbol}[];", f"extern const char {symbol}_sha[];"]
        definitions += [f"const char {symbol}[] ="]
        definitions += ["\n".join(map(c_string, text.splitlines(keepends=True))) + ";"]
        definitions += [f'const char {symbol}_sha[] = "{digest}";', ""]
    declarations += ["", "#endif"]
    header.write_text("\n".join(declarations) + "\n", encoding="ascii")
    source.write_text("\n".join(definitions) + "\n", encoding="ascii")


main()
