"""How processes of Slackwater talk: typed messages, one a line, over private Unix sockets.

Nothing here loads more than the standard library, msgspec and the vocabulary of ``core``.
"""
