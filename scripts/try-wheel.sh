#!/bin/sh
# Builds the wheel, installs it into an empty virtual environment and runs a fleet with it;
# WHEEL_PYTHON=python3.12 tries another Python than that of the virtual environment here.
set -eu
: "${VENV:=.venv}"
python="$PWD/$VENV/bin/python" source="$PWD"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps -w "$folder" "$source"
"${WHEEL_PYTHON:-$python}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    -c "$source/constraints.txt" "$folder"/slackwater-*.whl

cd "$folder"
unset PYTHONPATH
export SLACKWATER_RUNTIME_DIR="$folder" PATH="$folder/venv/bin:$PATH"
slackwater --version
slackwater doctor
slackwater bench --help >/dev/null
slackwater simulate --help >/dev/null
python "$source/scripts/try_wheel.py" "$folder"
