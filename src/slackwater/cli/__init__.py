"""The command line: ``slackwater COMMAND --help`` tells the rest."""
