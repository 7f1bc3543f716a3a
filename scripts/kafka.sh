#!/bin/sh
# A Kafka broker and Spark's connector, for the tests that run them; nothing that users need. The
# versions are in kafka.xml. Without Maven, or where it reaches nothing, those tests are skipped.
set -eu
: "${VENV:=.venv}"
HERE=$(dirname "$0")

if ! command -v mvn >/dev/null; then
    echo "no Maven: tests against a Kafka broker are skipped (Debian/Ubuntu: apt install maven)"
    exit 0
fi
echo "fetching Kafka"
rm -rf "$VENV/kafka"
mkdir -p "$VENV/kafka"
if timeout 120 mvn --quiet --batch-mode --file "$HERE/kafka.xml" dependency:copy-dependencies \
    -DoutputDirectory="$(realpath "$VENV/kafka")" >"$VENV/kafka/maven.log" 2>&1; then
    touch "$VENV/kafka/complete"
else
    echo "Maven fails ($VENV/kafka/maven.log): tests against a Kafka broker are skipped"
fi
