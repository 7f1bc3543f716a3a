"""The page as a process beside a fleet: reads its settings as one JSON line from standard input,
writes its address, and runs until standard input is closed."""

import json
import logging
import os
import signal
import sys
import threading

from slackwater.common.logs import configure
from slackwater.core.errors import SlackwaterError
from slackwater.operations.dashboard.command import serve


def main() -> None:
    configure(logging.StreamHandler())
    settings = json.loads(sys.stdin.readline())

    def end_with_the_fleet() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_the_fleet, daemon=True).start()
    try:
        serve(settings["fleets"], settings["port"], lambda url: print(url, flush=True))
    except SlackwaterError as error:
        print(f"slackwater: {error}", file=sys.stderr)
        sys.exit(error.exit_status)


if __name__ == "__main__":
    main()
