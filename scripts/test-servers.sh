#!/bin/sh
# Servers that tests start for themselves; nothing that users need.
set -eu

if command -v redis-server >/dev/null 2>&1; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing redis-server"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server
else
    echo "without redis-server the tests of the Redis source are skipped (Debian/Ubuntu: sudo apt install redis-server)" >&2
fi
