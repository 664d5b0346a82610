"""The verb make-mirror: copies a prefix to another cluster, and keeps the copy equal to it."""

import asyncio
from typing import Any, Final

from etcd_aio import Client, EtcdError, Key, op
from etcd_aio.base import start_task
from etcd_aio.cli.arguments import only_word, raw
from etcd_aio.cli.connection import ClientSettings, terminal_prompt
from etcd_aio.cli.grammar import Switch, value, verb
from etcd_aio.cli.outcome import bad_arguments
from etcd_aio.cli.session import Session
from etcd_aio.mirror import Checkpoint, Mirror, MirrorStatistics

_LOOK_EVERY: Final = 1.0  # seconds
_COUNT_EVERY: Final = 30.0  # seconds, as etcdctl
_ETCD_OPS: Final = 128
_MIRROR_OPS: Final = 126  # so many fit beside the checkpoint


@verb(
    "make-mirror",
    "<destination endpoints>",
    value("--prefix", default="", help="of the keys to copy; all by default"),
    value("--rev", kind=int, default=0, help="copy only changes from this revision on; not with a checkpoint"),
    value("--max-txn-ops", kind=int, default=_ETCD_OPS, help="the most operations in a transaction"),
    value("--dest-prefix", default="", help="what the copies have in place of the prefix; the same by default"),
    Switch("--no-dest-prefix", help="the copies have no prefix"),
    value("--state-key", default="", help="key at the destination that has the progress"),
    value("--dest-cert", default=None, help="file of the client's certificate for the destination"),
    value("--dest-key", default=None, help="file of the client's key for the destination"),
    value("--dest-cacert", default=None, help="file of the certificates that its servers are verified with"),
    value("--dest-user", default=None, help="name[:password] at the destination"),
    value("--dest-password", default=None, help="password of that user"),
    Switch("--dest-insecure-transport", default=None, help="=false requires TLS at the destination"),
)
async def make_mirror(session: Session, words: tuple[str, ...], **options: Any) -> None:
    """Copies a prefix to another cluster, and keeps the copy equal: goes on where it was interrupted.

    Keys that the source does not have are deleted at the destination. Every 30 seconds the number of changes is
    printed, and on stderr how many revisions the copy is behind.
    """
    destination = only_word(words, "make-mirror takes one destination argument")
    if options["dest_prefix"] and options["no_dest_prefix"]:
        raise bad_arguments("`--dest-prefix` and `--no-dest-prefix` cannot be set at the same time, choose one")
    prefix = raw(options["prefix"])
    to_prefix = b"" if options["no_dest_prefix"] else raw(options["dest_prefix"]) or prefix
    ops = options["max_txn_ops"]
    async with session.client() as source, _client(session, destination, options) as client:
        mirror = Mirror(
            source,
            client,
            prefix=prefix,
            to_prefix=to_prefix,
            checkpoint_key=raw(options["state_key"]) or None,
            max_txn_ops=ops if ops > _ETCD_OPS else min(ops, _MIRROR_OPS),
        )
        if options["rev"] > 1:
            await _begin(source, client, mirror.checkpoint_key, (prefix, to_prefix), options["rev"])
        telling = start_task(_tell(session, source, mirror, prefix), name="etcd-aio make-mirror")
        try:
            await mirror.run()
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)


def _client(session: Session, destination: str, options: dict[str, Any]) -> Client:
    """A client of the destination, which shares no setting with that of the source but its limits."""
    names = ("cert", "key", "cacert", "user", "password")
    flags = {name: options[f"dest_{name}"] for name in names if options[f"dest_{name}"] is not None}
    if options["dest_insecure_transport"] is not None:
        flags["insecure_transport"] = f"{options['dest_insecure_transport']}".lower()
    flags["endpoints"] = destination
    return ClientSettings(flags, {}, terminal_prompt(), options=session.connection.options).client()


async def _begin(source: Client, client: Client, key: bytes, prefixes: tuple[bytes, bytes], revision: int) -> None:
    """Make a checkpoint, as if everything before a revision were copied; not if there is one."""
    cluster = (await source.range(prefixes[0] or b"\0", count_only=True)).header.cluster_id
    made = Checkpoint(cluster, *prefixes, revision=revision - 1, is_complete=True)
    await client.do(op.txn(when=[Key(key).missing], then=[op.put(key, made.encode())]))


async def _tell(session: Session, source: Client, mirror: Mirror, prefix: bytes) -> None:
    """Print the progress, and what goes wrong, once each."""
    clock = asyncio.get_running_loop().time
    before, due = MirrorStatistics(), clock() + _COUNT_EVERY
    while True:
        await asyncio.sleep(_LOOK_EVERY)
        now = mirror.statistics()
        if now.compared > before.compared:
            why = (
                "the history was compacted in the meantime" if before.compared or before.revision else "the first copy"
            )
            session.complain(f"all keys were compared: {why}")
        if now.error is not None and f"{now.error}" != f"{before.error}":
            session.complain(f"waiting: {now.error}")
        before = now
        if clock() >= due:
            due = clock() + _COUNT_EVERY
            session.line(f"{now.puts + now.deletes}")
            try:
                head = (await source.range(prefix or b"\0", count_only=True)).revision
            except EtcdError:
                continue  # the mirror has the error, too
            session.complain(f"at revision {now.revision}, {max(0, head - now.revision)} behind")
