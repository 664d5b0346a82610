"""The verb restore: makes the keys of a prefix what a dump says.

The dump is read twice: first to the end, so that nothing is written of one that was cut off, then beside a scan of the
keys that exist. Only differences are written, so a restore that was interrupted goes on when it is run again.
"""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from etcd_aio import Client, Compare, Key, KeyValue, Lease, op
from etcd_aio.cli.arguments import raw
from etcd_aio.cli.dump_format import DumpedKey, DumpHead, MalformedDumpError, check, read_keys
from etcd_aio.cli.go_text import quoted
from etcd_aio.cli.grammar import Switch, value, verb
from etcd_aio.cli.outcome import ExitCode, Failure, bad_arguments
from etcd_aio.cli.restore_plan import MOST_BYTES, KeyChange, OutOfPlaceError, change_of, is_conflict, moved
from etcd_aio.cli.session import Session
from etcd_aio.errors import TooManyOpsError


@verb(
    "restore",
    "[file] (or the dump on stdin)",
    value("--to", default=None, help="the prefix in place of that of the dump"),
    Switch("--dry-run", help="print what would change, and change nothing"),
    Switch("--prune", help="delete keys of the prefix that the dump does not have"),
    Switch("--if-unchanged", help="only if no key to be changed was changed since the dump"),
    value("--batch", kind=int, default=100, help="the most keys in a transaction"),
    Switch("--atomic", help="in one transaction, or not at all"),
    value("--leases", default="drop", help="keys with a lease get none (drop), or a new one of the same TTL (grant)"),
)
async def restore(session: Session, words: tuple[str, ...], **options: Any) -> None:
    """Makes the keys of a prefix what a dump says; other keys of the prefix stay, unless they are pruned.

    Each batch is one transaction; several batches are not.
    """
    if len(words) > 1:
        raise bad_arguments("restore takes at most one argument, the file")
    if options["leases"] not in ("drop", "grant"):
        raise bad_arguments("--leases must be drop or grant")
    if options["batch"] < 1:
        raise bad_arguments("--batch must be at least 1")
    if options["if_unchanged"] and options["to"] is not None:
        raise bad_arguments(
            "`--if-unchanged` and `--to` cannot be used together: keys with another prefix have other revisions"
        )
    try:
        with _opened(session, words) as file:
            head = check(file)
            file.seek(0)
            file.readline()
            to_prefix = head.prefix if options["to"] is None else raw(options["to"])
            wanted = moved(read_keys(file, head), head.prefix, to_prefix)
            async with session.client() as client:
                await Restore(session, client, head, options).run(wanted, to_prefix)
    except (MalformedDumpError, OutOfPlaceError) as error:
        raise Failure(ExitCode.INVALID_INPUT, f"{error}") from None


@contextmanager
def _opened(session: Session, words: tuple[str, ...]) -> Iterator[IO[bytes]]:
    """The dump, in a file that can be read twice."""
    with ExitStack() as stack:
        try:
            if words and words[0] != "-":
                file: IO[bytes] = stack.enter_context(Path(words[0]).open("rb"))
            else:
                file = stack.enter_context(tempfile.TemporaryFile())
                with session.interruptible() as stdin:
                    shutil.copyfileobj(stdin, file)
                file.seek(0)
        except OSError as error:
            raise Failure(ExitCode.IO, f"{error.filename or 'stdin'}: {error.strerror}") from None
        yield file


async def beside(
    wanted: Iterator[DumpedKey], found: AsyncIterator[KeyValue]
) -> AsyncIterator[tuple[DumpedKey | None, KeyValue | None]]:
    """Pair the keys of both sides, which come in order; None stands for a key that a side does not have."""
    one, other = next(wanted, None), await anext(found, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one.key < other.key):
            yield one, None
            one = next(wanted, None)
        elif one is None or other.key < one.key:
            yield None, other
            other = await anext(found, None)
        else:
            yield one, other
            one, other = next(wanted, None), await anext(found, None)


@dataclass
class Restore:
    """One restore.

    Attributes:
        session: prints.
        client: reads and writes.
        head: the first line of the dump.
        options: the flags of the verb.
    """

    session: Session
    client: Client
    head: DumpHead
    options: dict[str, Any]
    _batch: list[KeyChange] = field(default_factory=list)
    _leases: dict[int, Lease] = field(default_factory=dict)
    _living: AsyncExitStack = field(default_factory=AsyncExitStack)  # leases that are renewed until all is written
    _bytes: int = 0  # of the batch
    _puts: int = 0
    _deletes: int = 0
    _equal: int = 0
    _txns: int = 0

    async def run(self, wanted: Iterator[DumpedKey], to_prefix: bytes) -> None:
        """Write the differences, or print them.

        Args:
            wanted: the keys that should be.
            to_prefix: of these, and of those that are compared with them.

        Raises:
            Failure: a key was changed since the dump, or the changes do not fit into the one transaction.
            EtcdError: a request failed. What is written stays.
        """
        if self.options["if_unchanged"]:
            await self._check_cluster()
        keeps, prunes = self.options["leases"] == "grant", self.options["prune"]
        scan = self.client.scan(prefix=to_prefix)
        try:
            async for one, other in beside(wanted, scan):
                change = change_of(one, other, keeps_leases=keeps, prunes=prunes)
                if change is None:
                    self._equal += one is not None
                else:
                    await self._add(change)
            await self._flush()
        finally:
            await scan.aclose()
            await self._living.aclose()
        self._tell()

    async def _check_cluster(self) -> None:
        cluster = (await self.client.range(b"\0", count_only=True)).header.cluster_id
        if f"{cluster:x}" != self.head.cluster:
            raise bad_arguments("--if-unchanged: the dump is from another cluster, so its revisions cannot be compared")

    async def _add(self, change: KeyChange) -> None:
        if self.options["if_unchanged"] and is_conflict(change, self.head):
            raise Failure(ExitCode.ERROR, f"{quoted(change.key)} has changed since the dump{self._so_far()}")
        if self.options["dry_run"]:
            self.session.line(change.line())
            self._count(change)
            return
        is_full = len(self._batch) >= self.options["batch"]
        size = change.size(is_conditional=self.options["if_unchanged"])
        if is_full or self._bytes + size > MOST_BYTES:
            if self._batch and self.options["atomic"]:
                raise Failure(ExitCode.ERROR, "the changes do not fit into one transaction: nothing was written")
            await self._flush()
        self._batch.append(change)
        self._bytes += size

    async def _flush(self) -> None:
        """Write the batch as one transaction."""
        if not self._batch:
            return
        is_conditional = self.options["if_unchanged"]
        when = [_unchanged(change) for change in self._batch] if is_conditional else []
        then = [await self._operation(change) for change in self._batch]
        # Unconditional puts may be applied twice.
        try:
            done = await self.client.do(op.txn(when=when, then=then), retry="safe" if is_conditional else "always")
        except TooManyOpsError:
            text = f"the server does not accept {len(then)} operations in one transaction: use a smaller --batch"
            limit = "it accepts 128 unless its --max-txn-ops says otherwise"
            raise Failure(ExitCode.ERROR, f"{text}; {limit}{self._so_far()}") from None
        if not done.succeeded:
            raise Failure(ExitCode.ERROR, f"a key of a batch was changed meanwhile{self._so_far()}")
        for change in self._batch:
            self._count(change)
        self._txns += 1
        self._batch.clear()
        self._bytes = 0

    async def _operation(self, change: KeyChange) -> op.PutOp | op.DeleteOp:
        if change.after is None:
            return op.delete(change.key)
        lease = change.after.lease if self.options["leases"] == "grant" else 0
        if lease and lease not in self._leases:
            made = self.client.lease(max(1, change.after.lease_ttl), on_lost="signal")
            self._leases[lease] = await self._living.enter_async_context(made)
            self._living.callback(made.orphan)  # first, so that leaving does not revoke it
        return op.put(change.key, change.after.value, lease=self._leases.get(lease))

    def _count(self, change: KeyChange) -> None:
        self._puts += change.after is not None
        self._deletes += change.after is None

    def _so_far(self) -> str:
        return f"; {self._puts + self._deletes} keys were written before" if self._txns else "; nothing was written"

    def _tell(self) -> None:
        would = "would be " if self.options["dry_run"] else ""
        counts = f"{self._puts} keys {would}restored, {self._deletes} {would}deleted, {self._equal} equal already"
        self.session.line(counts)
        if self._txns > 1:
            self.session.complain(f"{self._txns} transactions were needed: readers could see the keys of some of them")


def _unchanged(change: KeyChange) -> Compare:
    return Key(change.key).mod_revision == (0 if change.before is None else change.before.mod_revision)
