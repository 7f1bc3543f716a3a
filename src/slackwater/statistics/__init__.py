"""Statistics, one of each: what is smoothed, what batches cost, how fast rows come, how sure."""
