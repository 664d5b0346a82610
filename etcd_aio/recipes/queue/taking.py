"""Taking: hands the items of a queue to the consumers of this process, in the order in which they came.

One task takes for all of them, so they never compete with each other, and as many as wait are served by one txn. While
the queue is empty the task has one watch: from now, then a listing, so that no put falls in between and no old
revision is named. The task ends when no consumer waits.

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
    UNSET,
    HandOver,
    Pauses,
    check_loop,
    deadline_after,
    log_for,
    repeat_unanswered,
    start_background_task,
)
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import (
    CompactedError,
    EtcdError,
    ItemInDoubtError,
    QueueTimeoutError,
    ResultLostError,
    StoreRolledBackError,
)
from etcd_aio.recipes.calls import RecipeCalls
from etcd_aio.recipes.queue.known_items import LARGEST_WINDOW, KnownItem, KnownItems, Spread
from etcd_aio.types import EventType, KeyRange, shown_key

logger: Final = logging.getLogger("etcd_aio.queues")

MOST_AT_A_TIME: Final = 16
"""Items of one txn: with the largest values that etcd accepts by default, the answer is 24 MiB."""

_FEWEST_LISTED: Final = MOST_AT_A_TIME  # keys of a listing that is for one claim
_KNOWN_SECONDS: Final = 1.0  # that a listing is good for


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
        calls: of the queue; their timeout is that of one txn.
        keys: the range of the items.
        is_item: whether a key in that range is that of an item.
        what: the queue, for errors.
        looks_again: whether every claim lists first, since any item may be put before those that are known.
    """

    def __init__(
        self, calls: RecipeCalls, keys: KeyRange, is_item: Callable[[bytes], bool], what: str, *, looks_again: bool
    ) -> None:
        self._calls = calls
        self._store = calls.store
        self._keys = keys
        self._is_item = is_item
        self._what = what
        self._looks_again = looks_again
        self._log = log_for(logger, calls.store)
        self._waiting: HandOver[Item | Exception | None] = HandOver(self._take_back)
        self._left: deque[Item | Exception] = deque()  # for the next consumers: none waits while there are any
        self._known = KnownItems()
        self._listed_at = 0.0
        self._revision = 0  # of the last listing
        self._factor = 1  # of the limit of a listing, while keys that are no items come first
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
        if isinstance(outcome, Exception):
            raise outcome.with_traceback(None)  # it may be the error of several calls
        return outcome

    # Consumers.

    def _hand_over(self, outcome: Item | Exception) -> bool:
        """Give an outcome to the consumer that has waited longest; leave it for the next one if none waits."""
        is_given = self._waiting.give(outcome)
        if not is_given:
            self._left.append(outcome)
        return is_given

    def _take_back(self, outcome: Item | Exception | None) -> None:
        """A consumer was cancelled in the moment in which it was served: the next one is."""
        if isinstance(outcome, Item | ItemInDoubtError | OutcomeUnknownError):
            self._hand_over(outcome)

    def _leave(self) -> None:
        """A consumer has its outcome, or waits no longer. A claim under way continues; listing and waiting end."""
        if self._task is not None and not self._is_claiming and not self._waiting:
            self._task.cancel()
            self._task = None

    def _fail(self, error: Exception) -> None:
        """A listing, a watch or a claim has failed, for all that wait."""
        while self._waiting.give(error):
            pass

    # The task.

    async def _serve(self) -> None:
        if asyncio.get_running_loop().time() > self._listed_at + _KNOWN_SECONDS:
            self._known.forget()
        task = asyncio.current_task()
        try:
            while self._waiting:
                try:
                    if not self._known or self._looks_again:
                        await self._look()
                    if self._known:
                        await self._claim()
                    elif self._known.is_complete:
                        await self._wait()
                except (CompactedError, StoreRolledBackError):
                    self._known.forget()
                except Exception as error:  # also of the application's backend, which the consumers must see
                    self._known.forget()
                    self._fail(error)
        finally:
            if self._task is task:
                self._task = None

    async def _look(self) -> None:
        self._know(await repeat_unanswered(lambda: self._store.do(self._listing(), timeout=None)))

    def _listing(self) -> op.RangeOp:
        """A read of the first items: for several claims, or for the next one alone.

        A key in their range that is no item must not hide those behind it.
        """
        most = max(_FEWEST_LISTED, 2 * int(self._spread.window)) if self._looks_again else LARGEST_WINDOW
        return op.RangeOp(self._keys, limit=min(most, LARGEST_WINDOW) * self._factor, keys_only=True)

    def _know(self, found: RangeResult) -> None:
        items = [KnownItem(kv.key, kv.mod_revision) for kv in found if self._is_item(kv.key)]
        self._known.replace(items, is_complete=not found.more)
        self._revision = found.revision
        self._listed_at = asyncio.get_running_loop().time()
        if found.more and not items:
            self._factor *= 2

    async def _wait(self) -> None:
        """The queue is empty: wait for puts."""
        watching = self._store.watch(self._keys.key, range_end=self._keys.range_end, timeout=None)
        async with watching as watcher:
            await self._look()
            while self._waiting and (self._known or self._known.is_complete):
                if not self._known:
                    while not self._known:
                        self._learn((await watcher.next_batch()).events)
                    await self._keep_apart(watcher)
                if self._known and self._waiting:
                    await self._claim(is_watching=True)

    async def _keep_apart(self, watcher: Watcher) -> None:
        """Wait for a random time: by then, another process may have taken the items."""
        if not self._spread.seconds:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._spread.seconds * random.random()):
                while self._known:
                    self._learn((await watcher.next_batch()).events)

    def _learn(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.revision <= self._revision or not self._is_item(event.key):
                continue  # a member that is behind delivers what the listing has shown already
            if event.type is EventType.PUT:
                self._known.add(KnownItem(event.key, event.revision))
            else:
                self._known.remove(event.key)

    async def _claim(self, *, is_watching: bool = False) -> None:
        """Take items for the consumers that wait."""
        picked = self._known.pick(min(len(self._waiting), MOST_AT_A_TIME), self._spread.window, random.random)
        for known in picked:
            self._known.remove(known.key)
        self._is_claiming, self._is_watching = True, is_watching
        try:
            taken = await self._take(picked)
        except (ItemInDoubtError, OutcomeUnknownError) as error:
            if not self._hand_over(error):
                self._log.warning("%s: %s", self._what, error)
            return
        except EtcdError as error:
            if not error.retryable:
                raise
            self._known.forget()
            await self._pauses.wait()
            return
        finally:
            self._is_claiming = False
        self._pauses.reset()
        for item in taken:
            self._hand_over(item)
        if len(taken) < len(picked):
            self._spread.lost()
            if not (taken or is_watching or self._lists(picked)):  # others take the rest too
                self._known.forget()
        else:
            self._spread.won()

    def _lists(self, picked: Sequence[KnownItem]) -> bool:
        """Whether a claim that comes too late is answered by a new list: not where replies are computed anew."""
        return len(picked) == 1 and not self._calls.is_exact

    async def _take(self, picked: Sequence[KnownItem]) -> list[Item]:
        """Delete the items that are still there, and return them.

        Raises:
            ItemInDoubtError: the answer was lost, and items are gone.
            EtcdError: the txn failed; nothing was deleted.
        """
        parts = [
            op.txn(when=[Key(item.key).mod_revision == item.revision], then=[op.delete(item.key, prev_kv=True)])
            for item in picked
        ]
        whole = parts[0] if len(parts) == 1 else op.txn(then=parts)
        if self._lists(picked) and not self._is_watching:
            whole = op.txn(when=whole.when, then=whole.then, otherwise=[self._listing()])
        try:
            result = await self._calls.commit(whole, self._calls.deadline(UNSET))
            if result.responses and isinstance(found := result.responses[0], RangeResult):
                self._know(found)
            return [item for item in _deleted(result, len(parts)) if item is not None]
        except ResultLostError as lost:
            if not lost.succeeded:  # of a txn for one item: another process has taken it
                return []
            raise self._in_doubt(picked, "{} may have been taken, and the values are compacted") from lost
        except Exception as error:
            if self._calls.is_exact or not isinstance(error, EtcdError):
                error.add_note(f"It was to take {_shown(picked)}.")
            if not isinstance(error, EtcdError) or not error.maybe_applied or isinstance(error, OutcomeUnknownError):
                raise
            first = error
        if self._calls.is_exact:
            raise self._in_doubt(picked) from first
        try:
            second = await self._calls.do(whole, self._calls.deadline(UNSET), "always")
            again = _deleted(second, len(parts))
        except EtcdError as error:
            raise self._in_doubt(picked) from error
        taken = [item for item in again if item is not None]
        gone = [known for known, item in zip(picked, again, strict=True) if item is None]
        if gone:
            for item in taken:
                self._hand_over(item)
            raise self._in_doubt(gone) from first
        return taken

    def _in_doubt(
        self, picked: Sequence[KnownItem], reason: str = "the answer was lost, and {} may have been taken"
    ) -> ItemInDoubtError:
        text = f"{self._what}: {reason.format(_shown(picked))}"
        keys = tuple(item.key for item in picked)
        return ItemInDoubtError(text, keys=keys, revision=max(item.revision for item in picked))


def _shown(items: Sequence[KnownItem]) -> str:
    return ", ".join(shown_key(item.key) for item in items)


def _deleted(result: TxnResult, count: int) -> list[Item | None]:
    """The item of each deletion; None where it was gone."""
    found: list[Item | None] = []
    for reply in (result,) if count == 1 else result.responses:
        deletion = reply.responses[0] if isinstance(reply, TxnResult) and reply.succeeded else None
        deleted = deletion.prev_kvs if isinstance(deletion, DeleteResult) else ()
        found.append(item_of(deleted[0]) if deleted else None)
    return found
