"""Engines steered through the kernel: the experiments of the Lachesis paper."""
