#!/bin/sh
# Flink's jars and its connector to Kafka, for the tests and benchmarks that run them; nothing that
# users need. The jars come from a Python package that is unpacked into a folder of its own: as a
# dependency it would clash with Spark's. The connector is a jar of Maven's, its version in
# flink.xml; where Maven is not, or reaches nothing, `slackwater bench versus` has no Flink.
set -eu
: "${VENV:=.venv}"
VERSION=2.3.0
HERE=$(dirname "$0")
CONNECTOR="$VENV/flink-kafka"

if [ ! -d "$VENV/flink/pyflink/lib" ]; then
    echo "unpacking Flink $VERSION"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile \
        --target "$VENV/flink" "apache-flink-libraries==$VERSION"
fi
if ! command -v mvn >/dev/null; then
    echo "no Maven: Flink has no connector to Kafka (Debian/Ubuntu: apt install maven)"
    exit 0
fi
mkdir -p "$CONNECTOR"
rm -f "$CONNECTOR"/*.jar
timeout 120 mvn --quiet --batch-mode --file "$HERE/flink.xml" dependency:copy-dependencies \
    -DoutputDirectory="$(realpath "$CONNECTOR")" >"$CONNECTOR/maven.log" 2>&1 ||
    echo "Maven fails ($CONNECTOR/maven.log): Flink has no connector to Kafka"
