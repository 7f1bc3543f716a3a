#!/bin/sh
# Virtual environment with pinned dependencies, and a Java that Spark can use.
set -eu
: "${PYTHON:=python3}" "${VENV:=.venv}"

"$PYTHON" - <<'EOF'
import sys
if sys.version_info < (3, 11):
    sys.exit(f"Python 3.11 or later is needed, this is {sys.version.split()[0]}: make PYTHON=python3.11 …")
EOF

java_version() {
    command="${JAVA_HOME:+$JAVA_HOME/bin/}java"
    "$command" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

if [ "$(java_version || true)" -ge 17 ] 2>/dev/null; then
    :
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing Java (default-jre-headless)"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq default-jre-headless
else
    echo "Java 17 or later is needed: install it (Debian/Ubuntu: sudo apt install default-jre-headless) and run make again" >&2
    exit 2
fi

[ -x "$VENV/bin/python" ] || "$PYTHON" -m venv "$VENV"
"$VENV/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
