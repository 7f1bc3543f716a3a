"""One way to make the kernel obey priorities a file."""
