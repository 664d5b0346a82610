"""Words: how docstrings about asyncio are said of blocking code."""

import re
from typing import Final

from release.facade.docstrings import rewritten

_CODE: Final = (
    (r"\basync (with|for)\b", r"\1"),
    (r"\basync def\b", "def"),
    (r"\bawait (?=[\w(])", ""),
    (r"\(\(([\w.]+\([^()]*\))\)\.", r"(\1."),
    (r"\baclose\b", "close"),
    (r"\s+# no await$", ""),
    (r"; no await$", ""),
)
_PROSE: Final = (
    (r"`async (with|for)\b", r"`\1"),
    (r"\bawait (?=[\w(]+[.(])", ""),
    (r"\baclose\b", "close"),
    (r"^Cancellation: ", "Ctrl-C: "),
)
SENTENCES: Final[dict[str, str]] = {}
"""Sentences about asyncio alone, and what is said instead."""


def blocking(text: str, indent: int) -> str:
    """A docstring for blocking code."""
    return rewritten(text, _prose, _code, indent)


def _prose(text: str) -> str:
    for pattern, replacement in _PROSE:
        text = re.sub(pattern, replacement, text)
    for old, new in SENTENCES.items():
        if old in text:
            used.add(old)
            text = text.replace(old, new)
    return re.sub(r"  +", " ", text).strip() if text.strip() != text or "  " in text else text


def _code(text: str) -> str:
    for pattern, replacement in _CODE:
        text = re.sub(pattern, replacement, text)
    return text


used: set[str] = set()
