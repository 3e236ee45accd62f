#!/bin/bash
# Builds the fuzz targets as OSS-Fuzz asks for them: with the compiler and the flags of its environment (CC, CFLAGS,
# LIB_FUZZING_ENGINE), into $OUT, each with its kept inputs and its limits. The libraries that a target needs go along,
# since it runs on a machine without them. Works in $WORK; the source is the tree that this file is in.
set -eu
source=$(realpath "$(dirname "$0")/../../..")
targets=(errors options pushes replies shards tls tokens url)

rm -rf "$WORK/evlock"
# The loader finds the libraries beside the target, wherever $OUT is put.
LDFLAGS="${LDFLAGS:-} -Wl,-rpath,\$ORIGIN/lib" meson setup --buildtype plain -Dchecks=true -Db_ndebug=false \
    -Db_lundef=false -Dfuzzing_engine="$LIB_FUZZING_ENGINE" -Dtests=enabled -Dtls=enabled -Dlibuv=disabled \
    -Dexamples=disabled -Dsimulation=disabled -Ddocs=disabled "$WORK/evlock" "$source"
meson compile -C "$WORK/evlock" "${targets[@]/#/fuzz_}"

mkdir -p "$OUT/lib"
for target in "${targets[@]}"; do
    program=$OUT/fuzz_$target
    cp "$WORK/evlock/test/fuzz/fuzz_$target" "$program"
    ldd "$program" | sed -n 's/.* => \(\/.*lib\(hiredis\|event\|uuid\|ssl\|crypto\)[^ ]*\) .*/\1/p' |
        xargs -r cp --no-clobber --target-directory "$OUT/lib"
    printf '[libfuzzer]\nmax_len = 256\nlen_control = 0\n' > "$program.options"
    python3 - "$source/test/fuzz/corpus/$target.hex" "${program}_seed_corpus.zip" << 'END_OF_PYTHON'
import sys
import zipfile

with open(sys.argv[1], encoding="ascii") as lines, zipfile.ZipFile(sys.argv[2], "w") as archive:
    for number, line in enumerate(lines):
        archive.writestr(str(number), bytes.fromhex(line.split()[-1]))
END_OF_PYTHON
done
