"""The verb dump: all keys of a prefix, at one revision, page by page."""

import asyncio
from collections.abc import Set as AbstractSet
from typing import Final

from etcd_aio import Client, KeyValue
from etcd_aio.cli.arguments import raw
from etcd_aio.cli.dump_format import DumpedKey, DumpHead, DumpWriter
from etcd_aio.cli.dump_tree import DumpTree
from etcd_aio.cli.grammar import Switch, value, verb
from etcd_aio.cli.outcome import bad_arguments
from etcd_aio.cli.session import Session

_MOST_LEASES: Final = 10_000  # whose TTL is kept, beside those of a page, so that the memory has a bound
_AT_ONCE: Final = 64  # requests


@verb(
    "dump",
    "[prefix]",
    Switch("--tree", help="one nested JSON document, by the slashes of the keys; it cannot be restored"),
    value("--rev", kind=int, default=0, help="at this revision"),
    completes="keys",
)
async def dump(session: Session, words: tuple[str, ...], *, tree: bool, rev: int) -> None:
    """Writes the keys of a prefix as lines of JSON: all of one revision, in any number.

    The last line says that the dump is complete; `restore` refuses one that is not.
    """
    if len(words) > 1:
        raise bad_arguments("dump takes at most one argument, the prefix")
    prefix = raw(words[0]) if words else b""
    async with session.client() as client:
        await (_as_tree if tree else _as_lines)(session, client, prefix, max(0, rev))


async def _as_lines(session: Session, client: Client, prefix: bytes, revision: int) -> None:
    writer: DumpWriter | None = None
    ttls = LeaseTtls(client)
    async for page in client.scan(prefix=prefix, revision=revision).pages():
        lines = []
        if writer is None:
            writer = DumpWriter(DumpHead(revision or page.revision, prefix, f"{page.header.cluster_id:x}"))
            lines.append(writer.begin())
        await ttls.learn({kv.lease for kv in page.kvs if kv.lease})
        lines += [writer.key(_dumped(kv, ttls)) for kv in page.kvs]
        session.write_bytes(b"".join(lines))
    assert writer is not None  # noqa: S101 - an empty range has a page, too
    session.write_bytes(writer.end())


async def _as_tree(session: Session, client: Client, prefix: bytes, revision: int) -> None:
    tree = DumpTree()
    async for page in client.scan(prefix=prefix, revision=revision).pages():
        session.write("".join(tree.add(kv.key, kv.value) for kv in page.kvs))
    session.write(tree.end())


def _dumped(kv: KeyValue, ttls: "LeaseTtls") -> DumpedKey:
    ttl = ttls.of(kv.lease) if kv.lease else 0
    return DumpedKey(kv.key, kv.value, kv.mod_revision, kv.lease if ttl else 0, ttl)


class LeaseTtls:
    """The granted TTLs of leases; each lease is asked for once.

    Args:
        client: asks.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[int, int] = {}

    async def learn(self, leases: AbstractSet[int]) -> None:
        """Ask for those of the leases that are not known, several at once: a page may have a lease for each key.

        Raises:
            EtcdError: as of every read.
        """
        if len(self._known) >= _MOST_LEASES:
            self._known.clear()
        unknown = sorted(leases - self._known.keys())
        for at in range(0, len(unknown), _AT_ONCE):
            asked = unknown[at : at + _AT_ONCE]
            found = await asyncio.gather(*map(self._client.leases.time_to_live, asked), return_exceptions=True)
            for lease, result in zip(asked, found, strict=True):
                if isinstance(result, BaseException):
                    raise result
                self._known[lease] = result.granted_ttl

    def of(self, lease: int) -> int:
        """The seconds for which a lease that was learned was granted; 0 if it has ended since."""
        return self._known[lease]
