"""Where the repository is, for tests that look at what is not in the package."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
