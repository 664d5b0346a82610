"""Snapshot: the keys of a prefix, or one key, at one revision. Its repr has no values, which may be secrets."""

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from etcd_aio import Client, Store
from etcd_aio.arguments import to_bytes
from etcd_aio.base import UNSET, Timeout, when_constructed
from etcd_aio.calls import check_store
from etcd_aio.contrib.source import ClientSource, new_client
from etcd_aio.errors import InvalidRequestError
from etcd_aio.types import KeyLike, shown_key


class Snapshot(Mapping[str, bytes]):
    """The values of settings, by their keys without the prefix.

    Args:
        entries: the values.
        revision: of etcd, at which they were so.
    """

    __slots__ = ("_entries", "_revision")

    def __init__(self, entries: Mapping[str, bytes], revision: int) -> None:
        self._entries = dict(entries)
        self._revision = revision

    def __getitem__(self, key: str) -> bytes:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @when_constructed
    def __repr__(self) -> str:
        return f"<Snapshot of {', '.join(self) or 'no keys'} at revision {self._revision}>"

    @property
    def revision(self) -> int:
        """The revision of etcd."""
        return self._revision


def relative(key: bytes, prefix: bytes) -> str:
    """A key without the prefix, as text; bytes that are no UTF-8 are escaped."""
    return key.removeprefix(prefix).decode(errors="backslashreplace")


def checked_prefix(prefix: KeyLike) -> bytes:
    """A prefix of settings, encoded.

    Raises:
        InvalidRequestError: it does not end with a slash, so that no key below it would be a setting.
        TypeError: it is neither str nor bytes-like.
    """
    encoded = to_bytes(prefix, "prefix")
    if encoded and not encoded.endswith(b"/"):
        raise InvalidRequestError(f"prefix must end with a slash: got {shown_key(encoded)}")
    return encoded


async def load_snapshot(store: Store, prefix: KeyLike, *, timeout: Timeout = UNSET) -> Snapshot:
    """Read the settings of a prefix.

    Args:
        store: the client, or a namespace.
        prefix: of the keys, with its last slash.
        timeout: seconds for the call. Default: that of the client.

    Raises:
        EtcdError: as every read.
        InvalidRequestError: the prefix has no last slash.
    """
    check_store(store)
    encoded = checked_prefix(prefix)
    found = await store.range(prefix=encoded, timeout=timeout)
    return Snapshot({relative(kv.key, encoded): kv.value for kv in found.kvs}, found.revision)


def load_snapshot_blocking(source: ClientSource, prefix: KeyLike, *, timeout: float = 5.0) -> Snapshot:
    """Read the settings of a prefix where no event loop runs, or while one waits: for settings of a module.

    It uses a client and an event loop of its own, in a thread that has ended when this returns.

    Args:
        source: endpoints, a URL, or a function that makes a client.
        prefix: of the keys, with its last slash.
        timeout: seconds to wait. Default: 5.

    Raises:
        EtcdError: as every read.
        InvalidRequestError: the prefix has no last slash.
        ConfigError: the endpoints or the URL are invalid.
    """

    async def load() -> Snapshot:
        client: Client = new_client(source)
        async with client:
            return await load_snapshot(client, prefix, timeout=timeout)

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="etcd_aio settings") as threads:
        return threads.submit(lambda: asyncio.run(load())).result()
