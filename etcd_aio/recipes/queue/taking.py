"""Taking: hands the items of a queue to the consumers of this process, in the order in which they came.

One task takes for all of them, so they never compete with each other, and as many as wait are served by one txn. While
the queue is empty the task has one watch: from now, then a look, so that no put falls in between and no old revision is
named. The task ends when no consumer waits.

Each item is deleted under the condition that it is what it was. So a late copy of the request deletes nothing else, and
it can be sent again: if that copy deletes an item, the item is this process's. If the item is gone by then, either the
first copy has deleted it or another process has: only this is in doubt.

If others compete, what is known of the first items is soon old. So a claim that comes too late is answered by a new
list: it costs no round trip of its own.

A consumer that is cancelled while its item is being taken loses nothing: the item is for the next one.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from etcd_aio import DeleteResult, Event, Key, KeyValue, OutcomeUnknownError, RangeResult, TxnResult, Watcher, op
from etcd_aio.base import (
    SOON,
    HandOver,
    Pauses,
    check_loop,
    deadline_after,
    log_for,
    repeat_unanswered,
    start_background_task,
)
from etcd_aio.calls import StoreCalls, Writer, is_exact
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import (
    CompactedError,
    EtcdError,
    ItemInDoubtError,
    QueueTimeoutError,
    ResultLostError,
    StoreRolledBackError,
)
from etcd_aio.recipes.queue.candidates import LARGEST_WINDOW, Candidate, Candidates, Spread
from etcd_aio.types import EventType, KeyRange, shown_key

logger: Final = logging.getLogger("etcd_aio.queues")

MOST_AT_A_TIME: Final = 16
"""Items of one txn: with the largest values that etcd accepts by default, the answer is 24 MiB."""

_FEWEST_LISTED: Final = MOST_AT_A_TIME  # keys of a look that is for one claim
_KNOWN_SECONDS: Final = 1.0  # that a look is good for


@dataclass(frozen=True, slots=True, repr=False)
class Item:
    """An item of a queue.

    Attributes:
        key: the key that it had; those of one producer grow.
        value: its value.
        revision: of its put.
    """

    key: bytes
    value: bytes
    revision: int

    def text(self) -> str:
        """The value as UTF-8 text.

        Raises:
            ValueError: the value is not UTF-8.
        """
        return KeyValue(self.key, self.value).text()

    def __repr__(self) -> str:  # values are secrets
        return f"Item(key={shown_key(self.key)}, value=<{len(self.value)} bytes>, revision={self.revision})"


def item_of(kv: KeyValue) -> Item:
    """The item that a key-value is."""
    return Item(kv.key, kv.value, kv.mod_revision)


class Taker:
    """Takes items for the consumers of one queue object.

    Args:
        store: reads and watches.
        writer: makes the txns that take.
        keys: the range of the items.
        is_item: whether a key in that range is that of an item.
        what: the queue, for errors.
        timeout: seconds for one txn; None for no limit.
        looks_again: whether every claim looks first, since any item may be put before those that are known.
    """

    def __init__(
        self,
        store: StoreCalls,
        writer: Writer,
        keys: KeyRange,
        is_item: Callable[[bytes], bool],
        what: str,
        timeout: float | None,
        *,
        looks_again: bool,
    ) -> None:
        self._store = store
        self._writer = writer
        self._is_exact = is_exact(writer)
        self._keys = keys
        self._is_item = is_item
        self._what = what
        self._timeout = timeout
        self._looks_again = looks_again
        self._log = log_for(logger, store)
        self._waiting: HandOver[Item | EtcdError | None] = HandOver(self._give_back)
        self._left: deque[Item | EtcdError] = deque()  # of consumers that did not wait for the end
        self._candidates = Candidates()
        self._listed_at = 0.0
        self._revision = 0  # of the last look
        self._factor = 1  # of the limit of a look, while keys that are no items come first
        self._spread = Spread()
        self._pauses = Pauses(SOON)  # after claims that were refused, one after the other
        self._task: asyncio.Task[None] | None = None
        self._is_claiming = False
        self._is_watching = False  # the events tell what others take

    async def take(self, timeout: float | None) -> Item:
        """Wait for an item, and take it."""
        if self._task is not None:
            check_loop(self._task)
        deadline = deadline_after(timeout, asyncio.get_running_loop().time())
        if self._task is None and not self._left:
            self._task = start_background_task(self._serve(), name=f"etcd_aio {self._what}")
        try:
            outcome = self._left.popleft() if self._left else await self._waiting.wait(deadline, None)
        finally:
            self._leave()
        if outcome is None:
            raise QueueTimeoutError(f"{self._what} had no item in time")
        if isinstance(outcome, EtcdError):
            raise outcome.with_traceback(None)  # it may be the error of several calls
        return outcome

    # Consumers.

    def _hand_out(self) -> None:
        """Give what is left to those that wait."""
        while self._left and self._waiting.give(self._left[0]):
            self._left.popleft()

    def _give_back(self, outcome: Item | EtcdError | None) -> None:
        """A consumer was cancelled in the moment in which it was served: the next one is."""
        if isinstance(outcome, Item | ItemInDoubtError | OutcomeUnknownError):
            self._left.appendleft(outcome)
            self._hand_out()

    def _leave(self) -> None:
        """A consumer has its outcome, or waits no longer. A claim under way goes on; looking and waiting end."""
        if self._task is not None and not self._is_claiming and not self._waiting:
            self._task.cancel()
            self._task = None

    def _fail(self, error: EtcdError) -> None:
        """A look, a watch or a claim has failed, for all that wait."""
        while self._waiting.give(error):
            pass

    # The task.

    async def _serve(self) -> None:
        if asyncio.get_running_loop().time() > self._listed_at + _KNOWN_SECONDS:
            self._candidates.replace((), is_complete=False)
        task = asyncio.current_task()
        try:
            while self._waiting:
                try:
                    if not self._candidates or self._looks_again:
                        await self._look()
                    if self._candidates:
                        await self._claim()
                    elif self._candidates.is_complete:
                        await self._wait()
                except (CompactedError, StoreRolledBackError):
                    self._candidates.replace((), is_complete=False)
                except EtcdError as error:
                    self._candidates.replace((), is_complete=False)
                    self._fail(error)
        finally:
            if self._task is task:
                self._task = None

    async def _look(self) -> None:
        """List the first items. A key in their range that is no item must not hide those behind it."""
        found = await repeat_unanswered(
            lambda: self._store.range(
                self._keys.key, range_end=self._keys.range_end, limit=self._limit(), keys_only=True, timeout=None
            )
        )
        self._know(found)

    def _limit(self) -> int:
        """Keys of a look: for several claims, or for the next one alone."""
        most = max(_FEWEST_LISTED, 2 * int(self._spread.window)) if self._looks_again else LARGEST_WINDOW
        return min(most, LARGEST_WINDOW) * self._factor

    def _know(self, found: RangeResult) -> None:
        items = [Candidate(kv.key, kv.mod_revision) for kv in found if self._is_item(kv.key)]
        self._candidates.replace(items, is_complete=not found.more)
        self._revision = found.revision
        self._listed_at = asyncio.get_running_loop().time()
        if found.more and not items:
            self._factor *= 2

    async def _wait(self) -> None:
        """The queue is empty: wait for puts."""
        watching = self._store.watch(self._keys.key, range_end=self._keys.range_end, timeout=None)
        async with watching as watcher:
            await self._look()
            while self._waiting and (self._candidates or self._candidates.is_complete):
                if not self._candidates:
                    while not self._candidates:
                        self._learn((await watcher.next_batch()).events)
                    await self._keep_apart(watcher)
                if self._candidates and self._waiting:
                    await self._claim(is_watching=True)

    async def _keep_apart(self, watcher: Watcher) -> None:
        """Wait for a random time: by then, another process may have taken the items."""
        if not self._spread.seconds:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._spread.seconds * random.random()):
                while self._candidates:
                    self._learn((await watcher.next_batch()).events)

    def _learn(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.revision <= self._revision or not self._is_item(event.key):
                continue  # a member that is behind delivers what the look has shown already
            if event.type is EventType.PUT:
                self._candidates.add(Candidate(event.key, event.revision))
            else:
                self._candidates.remove(event.key)

    async def _claim(self, *, is_watching: bool = False) -> None:
        """Take items for the consumers that wait."""
        picked = self._candidates.pick(min(len(self._waiting), MOST_AT_A_TIME), self._spread.window, random.random)
        for one in picked:
            self._candidates.remove(one.key)
        self._is_claiming, self._is_watching = True, is_watching
        try:
            taken = await self._take(picked)
        except (ItemInDoubtError, OutcomeUnknownError) as error:
            self._left.append(error)
            self._hand_out()
            if error in self._left:
                self._log.warning("%s: %s", self._what, error)
            return
        except EtcdError as error:
            if not error.retryable:
                raise
            self._candidates.replace((), is_complete=False)
            await self._pauses.wait()
            return
        finally:
            self._is_claiming = False
        self._pauses.reset()
        self._left.extend(taken)
        self._hand_out()
        if len(taken) < len(picked):
            self._spread.lost()
            if not (taken or is_watching or self._lists(picked)):  # others take the rest too
                self._candidates.replace((), is_complete=False)
        else:
            self._spread.won()

    def _lists(self, picked: Sequence[Candidate]) -> bool:
        """Whether a claim that comes too late is answered by a new list: not where replies are computed anew."""
        return len(picked) == 1 and not self._is_exact

    async def _take(self, picked: Sequence[Candidate]) -> list[Item]:
        """Delete the items that are still there, and return them.

        Raises:
            ItemInDoubtError: the answer was lost, and items are gone.
            EtcdError: the txn failed; nothing was deleted.
        """
        parts = [
            op.txn(when=[Key(one.key).mod_revision == one.revision], then=[op.delete(one.key, prev_kv=True)])
            for one in picked
        ]
        whole = parts[0] if len(parts) == 1 else op.txn(then=parts)
        if self._lists(picked) and not self._is_watching:
            look = op.range(self._keys.key, range_end=self._keys.range_end, limit=self._limit(), keys_only=True)
            whole = op.txn(when=whole.when, then=whole.then, otherwise=[look])
        try:
            txn = self._writer.txn().when(*whole.when).then(*whole.then).otherwise(*whole.otherwise)
            result = await txn.commit(timeout=self._timeout, retry=None if self._is_exact else "safe")
            if result.responses and isinstance(found := result.responses[0], RangeResult):
                self._know(found)
            return [item for item in _deleted(result, len(parts)) if item is not None]
        except ResultLostError as lost:
            if not lost.succeeded:  # of a txn for one item: another process has taken it
                return []
            raise self._lost(picked) from lost
        except EtcdError as error:
            if self._is_exact:
                error.add_note(f"It was to take {', '.join(shown_key(one.key) for one in picked)}.")
            if not error.maybe_applied or isinstance(error, OutcomeUnknownError):
                raise
            first = error
        if self._is_exact:
            raise self._in_doubt(picked) from first
        try:
            again = _deleted(await self._store.do(whole, timeout=self._timeout, retry="always"), len(parts))
        except EtcdError as error:
            raise self._in_doubt(picked) from error
        gone = [one for one, item in zip(picked, again, strict=True) if item is None]
        if gone:
            self._left.extend(item for item in again if item is not None)
            raise self._in_doubt(gone) from first
        return [item for item in again if item is not None]

    def _lost(self, picked: Sequence[Candidate]) -> ItemInDoubtError:
        keys = tuple(one.key for one in picked)
        text = f"{self._what}: {', '.join(map(shown_key, keys))} may have been taken, and the values are compacted"
        return ItemInDoubtError(text, keys=keys, revision=max(one.revision for one in picked))

    def _in_doubt(self, picked: Sequence[Candidate]) -> ItemInDoubtError:
        keys = tuple(one.key for one in picked)
        text = f"{self._what}: the answer was lost, and {', '.join(map(shown_key, keys))} may have been taken"
        return ItemInDoubtError(text, keys=keys, revision=max(one.revision for one in picked))


def _deleted(result: TxnResult, count: int) -> list[Item | None]:
    """What each of the deletions has deleted; None where the item was gone."""
    found: list[Item | None] = []
    for reply in (result,) if count == 1 else result.responses:
        deletion = reply.responses[0] if isinstance(reply, TxnResult) and reply.succeeded else None
        deleted = deletion.prev_kvs if isinstance(deletion, DeleteResult) else ()
        found.append(item_of(deleted[0]) if deleted else None)
    return found
