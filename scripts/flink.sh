#!/bin/sh
# Flink's jars, for the tests and benchmarks that run it; nothing that users need. They come from a
# Python package that is unpacked into a folder of its own: as a dependency it would clash with
# Spark's.
set -eu
: "${VENV:=.venv}"
VERSION=2.3.0

[ -d "$VENV/flink/pyflink/lib" ] && exit 0
echo "unpacking Flink $VERSION"
"$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile \
    --target "$VENV/flink" "apache-flink-libraries==$VERSION"
