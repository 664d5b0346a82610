"""Where the repository and its pages are, and the type of the fixture `run`."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parent.parent.parent
PAGES = ROOT / "docs" / "pages"

Run: TypeAlias = Callable[..., str]
"""Run Python with the given arguments, and variables as keywords; returns what it printed."""
