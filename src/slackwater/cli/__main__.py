"""``python -m slackwater.cli``."""

from slackwater.cli.main import main

if __name__ == "__main__":
    main()
