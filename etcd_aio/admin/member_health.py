"""The checks that a member makes of itself, which it serves over HTTP beside gRPC, at `/livez` and `/readyz`.

etcd has these since 3.4.29, 3.5.11 and 3.6. Older members have only `/health`, which says one word for all. With
`?serializable=true` that needs no leader, as `/livez` does not.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from etcd_aio.admin.metrics import Get, read_document
from etcd_aio.base.deadline import time_left
from etcd_aio.errors import ConnectError
from etcd_aio.types import HealthCheck, MemberHealth

if TYPE_CHECKING:
    from etcd_aio.base.call_options import Timeout
    from etcd_aio.error_handler import Invoker

_OLD: Final = {"/livez": "/health?serializable=true", "/readyz": "/health"}
_LINE: Final = re.compile(r"\[([+-])\]([^ ]+) (?:ok|failed: (.*))")
_LAST_LINES: Final = ("ok", "")  # behind the checks: of a member that is healthy, and of another


async def read_health(
    invoker: "Invoker", get: Get, endpoint: str, path: str, exclude: Iterable[str], timeout: "Timeout"
) -> MemberHealth:
    """Read the checks of one member. See `Maintenance.readyz`."""
    if isinstance(exclude, str):
        raise TypeError("exclude must be several names, such as ['linearizable_read']; got str")
    names = tuple(exclude)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"exclude must be names of checks, as str; got {type(name).__name__}")
    query = "".join(f"&exclude={quote(name, safe='')}" for name in names)
    deadline = invoker.deadline(timeout, invoker.clock())
    left = time_left(deadline, invoker.clock())
    try:
        return parse_checks(endpoint, path, await read_document(invoker, get, endpoint, f"{path}?verbose{query}", left))
    except ConnectError as error:
        missing = error
    left = time_left(deadline, invoker.clock())
    try:
        return parse_word(endpoint, await read_document(invoker, get, endpoint, _OLD[path], left))
    except ConnectError:
        raise missing from None


def parse_checks(endpoint: str, path: str, text: str) -> MemberHealth:
    """Parse the answer of `/livez` or `/readyz`.

    Raises:
        ConnectError: it is not etcd's.
    """
    *lines, last = text.removesuffix("\n").split("\n")
    checks = tuple(sorted(_checks(lines), key=lambda check: check.name))
    if len(checks) != len(lines) or last not in _LAST_LINES or (last == "ok") is not all(one.is_ok for one in checks):
        raise ConnectError(f"the answer of {endpoint} to {path} is not that of etcd")
    return MemberHealth(endpoint, path, last == "ok", checks)


def parse_word(endpoint: str, text: str) -> MemberHealth:
    """Parse the answer of `/health`.

    Raises:
        ConnectError: it is not etcd's.
    """
    try:
        answer: object = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or answer.get("health") not in ("true", "false"):
        raise ConnectError(f"the answer of {endpoint} to /health is not that of etcd")
    is_ok, reason = answer["health"] == "true", answer.get("reason")
    check = HealthCheck("health", is_ok, reason if isinstance(reason, str) and not is_ok else "")
    return MemberHealth(endpoint, "/health", is_ok, (check,))


def _checks(lines: Iterable[str]) -> Iterator[HealthCheck]:
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is not None:
            sign, name, reason = match.groups()
            yield HealthCheck(name, sign == "+", reason or "")
