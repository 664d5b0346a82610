"""Words: how docstrings about asyncio are said of blocking code."""

import re
from pathlib import Path
from typing import Final

from release.facade.docstrings import rewritten

WRONG: Final = re.compile(
    r"\bawaits?\b|\basync\b|async (?:with|for|def)|\baclose\b|\banyio\b|asyncio\.|\btasks?\b|\bcoroutines?\b|\bloop\b"
    r"|\b[Cc]ancel(?:s|l?ed|l?ing|lation)?\b"
)
"""Words that say in most places that code is asynchronous."""

ALLOWED: Final = (
    "a loop over `client.scan",  # a statement
    "it is cancelled on the server",
    "its watch is cancelled on the server",
    "End the watch: cancel it on the server",
    "enable or cancel a downgrade",
    '`"enable"` or `"cancel"`',
    'empty for `"cancel"`',
    "no downgrade to cancel",
    "allow_in_loop: let calls block a thread in which an event loop runs. Default: False, such a call raises "
    "`BlockingInLoopError`, since the loop would stand still",
)
"""Sentences in which one of these words is right."""

_CODE: Final = (
    (r"\basync (with|for)\b", r"\1"),
    (r"\basync def\b", "def"),
    (r"\((await ([^()]*\((?:[^()]|\([^()]*\))*\)))\)", r"\2"),
    (r"\bawait (?=[\w(])", ""),
    (r"\baclose\b", "close"),
    (r"asyncio\.create_subprocess_exec\(", "subprocess.run(["),
    (r'"get", "a"\)', '"get", "a"])'),
    (r";? +no await$", ""),
    (r"; no await$", ""),
)
_PROSE: Final = (
    (r"`async (with|for)\b", r"`\1"),
    (r"\bawait (?=[\w]+[.(])", ""),
    (r"\baclose\b", "close"),
    (r"^Cancellation: ", "Ctrl-C: "),
    (r"\bCancellation (leaves|changes|loses|waits)\b", r"Ctrl-C \1"),
    (r"\bCancelling the wait changes\b", "Ctrl-C changes"),
    (r"\bCancelling a step\b", "Ctrl-C in a step"),
    (r"\bA cancelled (change|write) may\b", r"A \1 that Ctrl-C interrupts may"),
    (r"\bone task\b", "one thread"),
    (r"\btasks\b", "threads"),
    (r"\bany task\b", "any thread"),
    (r"\ba task\b", "a thread"),
)
"""What is said the same way everywhere."""


def sentences(text: str) -> dict[str, str]:
    """What is said instead of each sentence, by the lines of `sentences.txt`."""
    found = {}
    for part in text.split("\n\n"):
        old, arrow, new = (" ".join(one.split()) for one in part.partition("=>"))
        if arrow and not part.startswith("#"):
            found[old] = new
    return found


SENTENCES: Final = sentences((Path(__file__).parent / "sentences.txt").read_text(encoding="utf-8"))

used: set[str] = set()
"""The sentences that were found."""


def blocking(text: str, indent: int) -> str:
    """A docstring for blocking code."""
    return rewritten(text, _prose, _code, indent)


def _prose(text: str) -> str:
    before = text
    for old, new in SENTENCES.items():
        if old in text:
            used.add(old)
            text = text.replace(old, new)
    for pattern, replacement in _PROSE:
        text = re.sub(pattern, replacement, text)
    return text if text == before else re.sub(r"  +", " ", text).strip()


def _code(text: str) -> str:
    before = text
    for pattern, replacement in _CODE:
        text = re.sub(pattern, replacement, text)
    column = re.search(r"\S {3,}(?=\S)", before)
    if column is not None and " no await" not in before:  # what is said behind the code stays in its column
        text = re.sub(r"(?<=\S) {3,}(?=\S)", lambda gap: gap[0] + " " * (len(before) - len(text)), text, count=1)
    return text


def wrong_words(text: str) -> list[str]:
    """The words of a docstring, in one line, that must not be in one for blocking code."""
    for sentence in ALLOWED:
        text = text.replace(sentence, "")
    text = text.replace("a thread cannot be cancelled", "").replace("A thread cannot be cancelled", "")
    return WRONG.findall(text)
