"""Stm: runs a function as a transaction: again after each conflict, and never after a commit whose outcome is unknown.

Opacity: the function sees one real state, also in an attempt that will not commit. At the serializable levels all reads
of an attempt are of one revision. After a conflict the replies of the branch that ran instead, which are of one
revision, are known to the next attempt as a whole; a key that is not among them is read at that revision.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Generic, TypeVar

from etcd_aio import EtcdTimeoutError, TxnResult
from etcd_aio.arguments import check_async_function, check_awaitable, encode_key, whole_number
from etcd_aio.base import NEVER
from etcd_aio.calls import StoreCalls, Writer
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import ResultLostError, TxnConflictError
from etcd_aio.recipes.calls import RecipeCalls
from etcd_aio.recipes.stm.isolation import Isolation, level_of
from etcd_aio.recipes.stm.read_set import KnownKeys, ReadSet
from etcd_aio.recipes.stm.transaction import Transaction
from etcd_aio.recipes.stm.turnstile import Pass, turnstile_of
from etcd_aio.types import KeyLike, shown_key

T = TypeVar("T")

_TAKES: Final = "stm() takes an async function of a Transaction"
T_co = TypeVar("T_co", covariant=True)

DEFAULT_MAX_ATTEMPTS: Final = 100
"""Commits of one transaction: with a turnstile in each client, this many conflicts mean that it never gets through."""


@dataclass(frozen=True, slots=True, repr=False)
class StmResult(Generic[T_co]):
    """Result of a transaction.

    Attributes:
        value: what the function returned in the attempt that committed.
        revision: of the commit; of the state that was read, if nothing was written; 0 if nothing was read either.
        attempts: how often the function has run.
    """

    value: T_co
    revision: int
    attempts: int

    def __repr__(self) -> str:  # values are secrets
        return f"StmResult(revision={self.revision}, attempts={self.attempts})"


class StmCall(Generic[T]):
    """One call of `Store.stm`, which has its arguments; it ends by the deadline, an instant of the running loop."""

    def __init__(
        self,
        store: StoreCalls,
        function: Callable[[Transaction], Awaitable[T]],
        isolation: Isolation,
        prefetch: Iterable[KeyLike],
        max_attempts: int,
        writer: Writer | None,
        deadline: float,
    ) -> None:
        check_async_function(function, _TAKES)
        if isinstance(prefetch, str | bytes | bytearray | memoryview):
            raise TypeError(f"prefetch must be several keys, got one {type(prefetch).__name__}")
        self._calls = RecipeCalls(store, writer)
        self._turnstile = turnstile_of(store)
        self._function = function
        self._level = level_of(isolation)
        self._prefetch = tuple(encode_key(key, "prefetch") for key in prefetch)
        self._max_attempts = whole_number(max_attempts, "max_attempts", minimum=1)
        self._deadline = deadline
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self._runs = 0
        self._commits = 0
        self._has_paused = False
        self._pass: Pass | None = None

    async def run(self) -> StmResult[T]:
        """Run the function until an attempt has committed; see `Store.stm`."""
        known: KnownKeys | None = None
        committed: KnownKeys | None = None
        try:
            while True:
                reads = ReadSet(self._level)
                if known is not None:
                    reads.begin_with(known)
                value, is_valid = await self._attempt(reads)
                if not is_valid:  # compacted: the next attempt reads a newer state
                    known = None
                    continue
                if not reads.needs_commit:
                    return StmResult(value, reads.base, self._runs)
                busy = frozenset[bytes]() if self._pass is not None else self._turnstile.busy(reads.guarded_keys())
                if busy:  # others of this client are changing these keys now: this attempt would conflict
                    known = await self._enter(busy, None)
                    continue
                if await self._pause(reads):
                    known = None
                    continue
                sent = self._clock()
                try:
                    result: TxnResult | ResultLostError = await self._commit(reads)
                except ResultLostError as lost:  # what it has read is compacted, but not whether it has committed
                    result = lost
                if result.succeeded:
                    self._turnstile.changed(reads.guarded_keys(), self._commits - 1)
                    if self._pass is not None:
                        committed = reads.after_commit(result.revision)
                    return StmResult(value, result.revision, self._runs)
                known = await self._after_conflict(reads, result, self._clock() - sent)
        finally:
            if self._pass is not None:
                self._turnstile.leave(self._pass, committed)

    async def _attempt(self, reads: ReadSet) -> tuple[T, bool]:
        """Run the function once. Returns its value, and whether it has seen one state."""
        self._runs += 1
        transaction = Transaction(self._calls, reads, self._deadline)
        limit = asyncio.timeout_at(None if self._deadline == NEVER else self._deadline)
        try:
            async with limit:
                if self._prefetch:
                    await transaction.get_all(self._prefetch)
                made = self._function(transaction)
                check_awaitable(made, _TAKES)
                return await made, transaction._compacted is None
        except Exception as error:  # of the function, which may wrap that a read was compacted
            if transaction._compacted is not None and not limit.expired():
                return None, False  # type: ignore[return-value] # it is not used
            if limit.expired() and type(error) is TimeoutError:
                raise self._timeout_error("the function had not ended") from None
            raise
        finally:
            transaction._end()

    async def _commit(self, reads: ReadSet) -> TxnResult:
        txn = reads.commit()
        self._commits += 1
        return await self._calls.commit(txn, self._deadline)

    async def _pause(self, reads: ReadSet) -> bool:
        """Wait once if other clients have changed these keys lately. Returns whether what was read is old now."""
        contention = None if self._has_paused or self._commits else self._turnstile.contention(reads.guarded_keys())
        self._has_paused = True
        wait = 0.0 if contention is None else contention.before_change(random.random)
        if not wait or self._clock() + wait >= self._deadline:
            return False
        await asyncio.sleep(wait)
        return True

    async def _after_conflict(
        self, reads: ReadSet, result: TxnResult | ResultLostError, seconds: float
    ) -> KnownKeys | None:
        """Wait for the next attempt. Returns what it may begin with."""
        found = None if isinstance(result, ResultLostError) else reads.after_conflict(result)
        conflicts = tuple(reads.guarded_keys()) if found is None else reads.conflicts(found)
        if self._commits >= self._max_attempts:
            shown = ", ".join(shown_key(key) for key in conflicts)
            text = f"other writers were faster in each of {self._commits} attempts, lastly on {shown}"
            raise TxnConflictError(text, attempts_made=self._commits, conflicts=conflicts)
        contention = self._turnstile.contend(conflicts)
        contention.measured(seconds)
        wait = contention.after_conflict(self._commits, random.random)
        if self._pass is None:
            return await self._enter(frozenset(conflicts), found)
        if not self._pass.keys.issuperset(conflicts):
            own, self._pass = self._pass, None
            self._turnstile.leave(own, None)
            return await self._enter(own.keys.union(conflicts), found)
        # Another client, or one of this client's that began now and has read sooner.
        if self._clock() + wait >= self._deadline:
            raise self._timeout_error("another writer was faster")
        if not wait:
            return found
        await asyncio.sleep(wait)
        return None  # by now it is old

    async def _enter(self, keys: frozenset[bytes], found: KnownKeys | None) -> KnownKeys | None:
        """Wait for the turn. Returns what is known then: what was found before is old if this has waited."""
        try:
            async with asyncio.timeout_at(None if self._deadline == NEVER else self._deadline):
                self._pass = await self._turnstile.enter(keys)
        except TimeoutError:
            raise self._timeout_error("others of this client that change the same keys had not ended") from None
        return self._pass.snapshot if self._pass.has_waited else found

    def _timeout_error(self, reason: str) -> EtcdTimeoutError:
        error = EtcdTimeoutError(f"{reason}; {self._commits} commits were sent, and none was applied")
        error.call = "stm"
        error.seconds = self._clock() - self._began
        return error
