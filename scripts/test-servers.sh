#!/bin/sh
# Programs that tests start for themselves; nothing that users need.
set -eu

missing=""
for program in redis-server chromium; do
    command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing$missing"
    # shellcheck disable=SC2086  # words, one a package
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
else
    echo "without$missing the tests that need it are skipped (Debian/Ubuntu: sudo apt install$missing)" >&2
fi
