"""Text: what a peer sent, and how long something took, made fit for errors and logs.

Knows: characters and a limit. Never knows: what a text means.
"""

from typing import Final

MAX_MESSAGE_BYTES: Final = 4096
"""What an error keeps of a server's text, in UTF-8 bytes. gRPC sets no limit; the longest in the table has 74."""

_CUT: Final = "... (cut)"


def sanitize(text: str) -> str:
    """A peer's text, fit for errors and logs: one line, nothing a terminal would obey, at most `MAX_MESSAGE_BYTES`."""
    head = text[: MAX_MESSAGE_BYTES + 1]  # no character is shorter than a byte: what follows would be cut anyway
    if not head.isprintable():
        head = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in head)
    raw = head.encode()
    if len(raw) <= MAX_MESSAGE_BYTES:
        return head
    return raw[: MAX_MESSAGE_BYTES - len(_CUT)].decode(errors="ignore") + _CUT


def shown_seconds(seconds: float) -> str:
    """A duration as an error shows it: `3 ms`, `0.25 s`, `2 s`."""
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.2g} s"
    return f"{seconds:.0f} s"
