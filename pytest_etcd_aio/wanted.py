"""Wanted: the server that a test or a factory asks for, and how the plugin says that there is none."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, NoReturn

import pytest

MARKER: Final = (
    "etcd(nodes=3, version='>=3.6', tls=True, auth=True, private=True, options={'max_txn_ops': '10'}): the etcd that "
    "the fixtures of the test start: how many members, of which version, with TLS, with users, for this test alone, "
    "and with flags of etcd"
)


class Wanted(NamedTuple):
    """What a server has to be. A named tuple, which is made faster than a dataclass in every run of pytest.

    Attributes:
        nodes: how many members; None for one server, and for three if a cluster is asked for.
        version: in the notation of `etcd_aio.testing.find_etcd`; None for any.
        tls: whether it speaks TLS to clients.
        auth: whether authentication is on.
        private: whether it may be asked for what concerns the whole cluster, since no other test uses it.
        options: flags of etcd, with their values.
        is_cluster: whether the test uses a cluster, so that clients are clients of that.
        owner: the factory or the test that it belongs to; empty for one that tests share.
    """

    nodes: int | None = None
    version: str | None = None
    tls: bool = False
    auth: bool = False
    private: bool = False
    options: tuple[tuple[str, str], ...] = ()
    is_cluster: bool = False
    owner: str = ""

    @property
    def size(self) -> int:
        """How many members a cluster has."""
        return 3 if self.nodes is None else self.nodes

    @property
    def flags(self) -> list[str]:
        """The flags of etcd, as its command line takes them."""
        return [f"--{name.replace('_', '-')}={value}" for name, value in self.options]


def wanted_from(arguments: Mapping[str, object], *, is_cluster: bool = False, owner: str = "") -> Wanted:
    """What the arguments of a marker or a factory ask for.

    Args:
        arguments: those of the marker `etcd`.
        is_cluster: whether a cluster is used, however many nodes there are.
        owner: see `Wanted`.

    Raises:
        ValueError: an argument does not exist, or its value is invalid.
    """
    unknown = set(arguments) - {"nodes", "version", "tls", "auth", "private", "options"}
    if unknown:
        raise ValueError(f"etcd() has no argument {', '.join(sorted(unknown))}; it is {MARKER}")
    nodes, version, options = arguments.get("nodes"), arguments.get("version"), arguments.get("options")
    if nodes is not None and (not isinstance(nodes, int) or isinstance(nodes, bool) or nodes < 1):
        raise ValueError(f"etcd(nodes=) is a number of members from 1; got {nodes!r}")
    if version is not None and not isinstance(version, str):
        raise ValueError(f"etcd(version=) is text, such as '>=3.6'; got {version!r}")
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(f"etcd(options=) maps flags of etcd to values; got {options!r}")
    return Wanted(
        nodes=nodes,
        version=version,
        tls=_flag(arguments, "tls"),
        auth=_flag(arguments, "auth"),
        private=_flag(arguments, "private"),
        options=tuple(sorted((str(name), _text(value)) for name, value in (options or {}).items())),
        is_cluster=is_cluster or (nodes or 1) > 1,
        owner=owner,
    )


def private_only(call: str) -> str:
    """Why a call is refused on a server that other tests use too."""
    return (
        f"{call} concerns the whole cluster, which other tests use too; mark the test with "
        "`@pytest.mark.etcd(private=True)` for a cluster of its own"
    )


def unusable(reason: str) -> NoReturn:
    """Fail the test in one line, without a traceback of the plugin."""
    raise pytest.fail.Exception(reason, pytrace=False) from None


def merged(closest_first: Iterable[Mapping[str, object]]) -> dict[str, object]:
    """The arguments of several markers; those of the closest count."""
    found: dict[str, object] = {}
    for arguments in closest_first:
        found = {**arguments, **found}
    return found


def _flag(arguments: Mapping[str, object], name: str) -> bool:
    value = arguments.get(name, False)
    if value not in (False, True):
        raise ValueError(f"etcd({name}=) is True or False; got {value!r}")
    return bool(value)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
