"""The paths of the repository and its pages, and the type of the fixture `run`."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parent.parent.parent
PAGES = ROOT / "docs" / "pages"

Run: TypeAlias = Callable[..., str]
"""Run Python with these arguments, and with environment variables as keywords. Returns its output."""
