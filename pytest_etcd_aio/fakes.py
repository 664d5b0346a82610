"""Fakes: the `FakeEtcd` that a test asks for."""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Final

from etcd_aio.fake import FakeEtcd
from pytest_etcd_aio.wanted import Wanted

_RELEASES: Final = ("3.7", "3.6", "3.5", "3.4")  # newest first
_COMPARISONS: Final[Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt
}  # fmt: skip

ROOT: Final = ("root", "fake-root")
"""The user of a fake with authentication."""


def fake_for(wanted: Wanted, default: str) -> FakeEtcd:
    """A fake.

    Args:
        wanted: the arguments of the marker.
        default: the version of servers whose test names none, if the fake can be that; empty for the newest.

    Raises:
        ValueError: the fake cannot be the version that the marker asks for.
    """
    release = release_for(wanted.version) if wanted.version else default_release(default)
    return FakeEtcd(release, members=1 if wanted.nodes is None else wanted.nodes)


def default_release(version: str) -> str:
    """The newest release that fits a version, or the newest of all."""
    try:
        return release_for(version)
    except ValueError:
        return _RELEASES[0]


def release_for(version: str) -> str:
    """The newest release that fits a version in the notation of `find_etcd`. Patch levels do not count.

    Raises:
        ValueError: there is none.
    """
    clauses = [_clause(text.strip()) for text in version.split(",") if text.strip()]
    for release in _RELEASES:
        numbers = tuple(map(int, release.split(".")))
        if all(fits(numbers[: len(bound)], bound) for fits, bound in clauses):
            return release
    raise ValueError(f"a fake etcd can be {', '.join(_RELEASES)}, and none of them is {version!r}")


def _clause(text: str) -> tuple[Callable[[tuple[int, ...], tuple[int, ...]], bool], tuple[int, ...]]:
    match = re.fullmatch(r"(>=|<=|==|!=|<|>)?\s*(\d+)(?:\.(\d+))?(?:\.\d+)?", text)
    if match is None:
        raise ValueError(f"not a version or a comparison such as '>=3.6': {text!r}")
    return _COMPARISONS[match[1] or "=="], tuple(int(number) for number in match.groups()[1:] if number)
