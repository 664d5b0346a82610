"""Wider time limits for etcd's tests; nothing else in them is changed.

A Python program needs some tenths of a second to start, more on a busy machine, and a test runs dozens of them. The
limits were made for etcdctl, which starts at once. The TTL of a lease is a limit where the rest of the test must be
done before its end; then the pauses that wait for its end are longer, too. So is the pause for which a second lock or
candidate is seen to wait: it must have begun to wait before it is interrupted.
"""

import re
from pathlib import Path
from typing import Final

FACTOR: Final = 20
LEASE_FACTOR: Final = 5
PAUSE_FACTOR: Final = 30

_DURATION: Final = r"(?P<limit>(?:[\w.]+ ?\* ?)*[\w.]+(?: ?\* ?[\w.]+| ?\+ ?[\w.]+)*)"
_WIDENED: Final = (
    # What a test, a part of it, or the end of the processes that it has started may take.
    (FACTOR, rf"context\.WithTimeout\([^,\n]+, (?!watchTimeout){_DURATION}\)$"),
    (FACTOR, rf"^\t+watchTimeout := {_DURATION}$"),
    (FACTOR, r"CheckAfterTest\((?P<limit>1 \* time\.Second)\)"),
    (FACTOR, rf"CloseWithTimeout\(\w+, {_DURATION}\)"),
    (FACTOR, rf"ExecuteWithTimeout\(\w+, {_DURATION}, "),
    (FACTOR, rf"case <-time\.After\((?!timeout\)){_DURATION}\):\n[^\n]*(?:Fatal|tim(?:ed )?out)"),
    (FACTOR, rf"^\t+}}, {_DURATION}, [\w.]+ ?\* ?[\w.]+\)$"),  # of require.Eventually; then comes the pause between
    (FACTOR, r"^\treturn (?P<limit>timeout)$"),  # of getTestTimeout, for `time.After(timeout)`
    # Leases.
    (FACTOR, r"ctlV3LeaseGrant\(cx, (?P<limit>10)\)"),
    (LEASE_FACTOR, r"\.Grant\(ctx, (?P<limit>2|10)\)"),
    # Pauses.
    (PAUSE_FACTOR, r"case <-time\.After\((?P<limit>100 \* time\.Millisecond)\):\n\s*case <-ch:"),
)
_SHORT_LEASE: Final = ".Grant(ctx, 2)"
_SLEEP: Final = r"time\.Sleep\((?P<limit>[23] \* time\.Second)\)"


def widen(source: str) -> str:
    """The source of a test with wider limits."""
    functions = re.split(r"^(?=func )", source, flags=re.MULTILINE)
    source = "".join(_multiply(one, LEASE_FACTOR, _SLEEP) if _SHORT_LEASE in one else one for one in functions)
    for factor, pattern in _WIDENED:
        source = _multiply(source, factor, pattern)
    return source


def _multiply(source: str, factor: int, pattern: str) -> str:
    def multiplied(found: re.Match[str]) -> str:
        start, end = (at - found.start() for at in found.span("limit"))
        text = found[0]
        return f"{text[:start]}{factor}*({text[start:end]}){text[end:]}"

    return re.sub(pattern, multiplied, source, flags=re.MULTILINE)


def widen_all(folder: Path, *patterns: str) -> None:
    """Widen the limits in some files of a folder."""
    for path in (path for pattern in patterns for path in folder.glob(pattern)):
        path.write_text(widen(path.read_text()))
