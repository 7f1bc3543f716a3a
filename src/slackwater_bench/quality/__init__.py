"""Quality of data, measured: how long a cycle takes, and what happens under overload."""
