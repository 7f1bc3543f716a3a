"""What others rely on, written down, so that a reorganisation is seen to change nothing.

Public names, shapes of JSON, messages between processes, offsets in checkpoints, and the decisions
of every policy in the simulator. A test makes each anew and compares it with a file here.

Where a change is wanted, write the files anew and read the difference before it is committed::

    SLACKWATER_GOLDEN=write pytest tests/golden
"""
