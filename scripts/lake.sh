#!/bin/sh
# Delta, Iceberg, Hadoop's client for S3 and a server of its protocol, for the tests that run them on
# Spark 4.1; nothing that users need. The jars' versions are in lake.xml. The server is moto, which
# keeps objects in memory, in an environment of its own: it wants older versions than
# constraints.txt has. Without Maven, or where one of the two
# cannot be fetched, those tests are skipped.
set -eu
: "${PYTHON:=python3}" "${VENV:=.venv}"
HERE=$(dirname "$0")

if ! command -v mvn >/dev/null; then
    echo "no Maven: tests with Delta, Iceberg and S3 are skipped (Debian/Ubuntu: apt install maven)"
    exit 0
fi
echo "fetching Delta, Iceberg and Hadoop's client for S3"
rm -rf "$VENV/lake"
mkdir -p "$VENV/lake"
FOLDER=$(realpath "$VENV/lake")
if timeout 240 mvn --quiet --batch-mode --file "$HERE/lake.xml" dependency:copy-dependencies \
    -DoutputDirectory="$FOLDER" >"$FOLDER/log" 2>&1 &&
    "$PYTHON" -m venv "$FOLDER/s3" >>"$FOLDER/log" 2>&1 &&
    "$FOLDER/s3/bin/python" -m pip install --quiet --disable-pip-version-check \
        "moto[s3]==5.2.5" flask flask-cors >>"$FOLDER/log" 2>&1; then
    touch "$FOLDER/complete"
else
    echo "cannot be fetched ($VENV/lake/log): tests with Delta, Iceberg and S3 are skipped"
fi
