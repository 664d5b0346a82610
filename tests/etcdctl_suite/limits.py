"""Wider time limits for etcd's tests; nothing else of the tests is changed.

A Python program needs some tenths of a second to start, and a test runs dozens of them. The limits were made for
etcdctl, which starts at once.
"""

import re
from pathlib import Path
from typing import Final

FACTOR: Final = 10
_DURATION: Final = r"(?P<limit>(?:[\w.]+ ?\* ?)*[\w.]+(?: ?\* ?[\w.]+| ?\+ ?[\w.]+)*)"
_WIDENED: Final = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        # What a test, or a part of it, may take.
        rf"context\.WithTimeout\([^,\n]+, {_DURATION}\)$",
        rf"CloseWithTimeout\(\w+, {_DURATION}\)",
        rf"ExecuteWithTimeout\(\w+, {_DURATION}, ",
        rf"case <-time\.After\((?!timeout\)){_DURATION}\):\n[^\n]*(?:Fatal|tim(?:ed )?out)",
        rf"^\t+}}, {_DURATION}, [\w.]+ ?\* ?[\w.]+\)$",  # of require.Eventually; what follows is the pause between
        r"ctlV3LeaseGrant\(cx, (?P<limit>10)\)",  # seconds within which the rest of the test must be done
        r"^\treturn (?P<limit>timeout)$",  # of getTestTimeout, for `time.After(timeout)`
    )
)


def widen(source: str) -> str:
    """The source of a test with wider limits."""
    for pattern in _WIDENED:
        source = pattern.sub(_multiplied, source)
    return source


def _multiplied(found: re.Match[str]) -> str:
    start, end = (at - found.start() for at in found.span("limit"))
    text = found[0]
    return f"{text[:start]}{FACTOR}*({text[start:end]}){text[end:]}"


def widen_all(folder: Path) -> None:
    """Widen the limits in the tests of a package that are run."""
    for path in folder.glob("ctl_v3*_test.go" if folder.name == "e2e" else "*_test.go"):
        path.write_text(widen(path.read_text()))
