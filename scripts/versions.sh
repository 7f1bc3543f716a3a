#!/bin/sh
# An environment for each Spark version that is supported besides the pinned one, beside the virtual
# environment: scripts/versions.sh 3.5 4.1, or all of them. Everything but Spark is what
# constraints.txt pins, so what differs between two environments is Spark. Where PyPI is out of reach
# none is made, and its tests are skipped.
set -eu
: "${PYTHON:=python3}" "${VENV:=.venv}"

newest() {  # the patch release that stands for a version
    case "$1" in
        3.5) echo 3.5.9 ;;
        4.0) echo 4.0.5 ;;
        4.1) echo 4.1.4 ;;
        4.2) echo 4.2.1 ;;
        *) echo "no environment for Spark $1: there are 3.5, 4.0, 4.1, 4.2; 4.3 is in $VENV" >&2; exit 2 ;;
    esac
}

[ $# -gt 0 ] || set -- 3.5 4.0 4.1 4.2
for version in "$@"; do
    release=$(newest "$version")
    folder="$VENV/spark-$version"
    echo "Spark $release in $folder"
    [ -x "$folder/bin/pip" ] || "$PYTHON" -m venv "$folder"
    if ! "$folder/bin/python" -m pip --retries 0 --timeout 15 --disable-pip-version-check \
        index versions pyspark >"$folder/reach.log" 2>&1; then
        echo "PyPI is out of reach ($folder/reach.log): the tests on Spark $version are skipped"
        continue
    fi
    # py4j belongs to Spark: each release demands one version of it. pandas is for approximate
    # results before 4.1.
    grep -v -i -E '^(pyspark|py4j)==' constraints.txt >"$folder/constraints.txt"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
        -c "$folder/constraints.txt" "pyspark==$release" pandas hypothesis pytest pytest-timeout -e ".[kafka]"
    touch "$folder/ready"
done
