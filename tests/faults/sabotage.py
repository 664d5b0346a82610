"""Defects that a run must catch: each breaks one decision of the library, in the process that calls it.

Several of them are defects that other clients of etcd have had; their numbers are those of etcd-io/etcd.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from etcd_aio import Key, op
from etcd_aio.concurrency import held, own_key
from etcd_aio.concurrency.fenced import FencedWriter
from etcd_aio.concurrency.leaders import Candidates, Leader
from etcd_aio.concurrency.leadership import Leadership
from etcd_aio.concurrency.line import Line
from etcd_aio.concurrency.own_key import OwnKey
from etcd_aio.concurrency.place import Place, PlaceState


def release_without_guard() -> None:
    """Delete the own key whatever its revision is (#22082): a late copy takes the lock from the next holder."""

    async def delete(self: Any, *more: op.TxnOp) -> None:
        await self._store.do(op.txn(then=[op.delete(self.key), *more]), timeout=2.0, retry="always")

    swap(OwnKey, "_delete", delete)


def no_own_key_check() -> None:
    """Hold if no key is before the own one, though that is gone (#11456, #11007)."""
    looked = Place.looked

    def careless(self: Place, found: Any, own: Any) -> None:
        looked(self, found, own)
        if self.state is PlaceState.LOST:
            self.state = PlaceState.LOOKING
            self.move(PlaceState.HELD)

    swap(Place, "looked", careless)


def get_then_watch() -> None:
    """Look first, then watch from now: the deletion in between is missed."""

    async def wait(self: Any, ahead: Any) -> None:
        self.place.checked(await self._store.get(ahead.key, keys_only=True))
        if self.place.state is PlaceState.WAITING:
            await asyncio.sleep(0.05)  # the member is slow
            async with self._store.watch(ahead.key, filters=("no_put",), timeout=None) as watcher:
                await anext(watcher)
            self.place.vanished()

    swap(Line, "_wait", wait)


def get_then_watch_an_old_revision() -> None:
    """Look first, then watch from the revision of the look: a compaction ends the wait (#9715, #21128)."""

    async def wait(self: Any, ahead: Any) -> None:
        found = await self._store.range(ahead.key, keys_only=True)
        self.place.checked(found[0] if found else None)
        if self.place.state is PlaceState.WAITING:
            revision = ahead.create_revision + 1
            async with self._store.watch(ahead.key, filters=("no_put",), start_revision=revision) as watcher:
                await anext(watcher)
            self.place.vanished()

    swap(Line, "_wait", wait)
    swap(own_key, "_REPEATED", ())


def herd() -> None:
    """Let every waiter wake up at every release. No rule is broken; `test_wakeups.py` counts the calls."""

    async def wait(self: Any, ahead: Any) -> None:
        async with self._store.watch(prefix=self.place.keys.before, filters=("no_put",), timeout=None) as watcher:
            self.place.checked(await self._store.get(ahead.key))
            if self.place.state is PlaceState.WAITING:
                await anext(watcher)
                self.place.vanished()

    swap(Line, "_wait", wait)


def lease_returned_dirty() -> None:
    """Use a lease again although a copy of a request that creates a key may still travel."""
    create = OwnKey._create

    async def forget(self: Any, *arguments: Any) -> Any:
        result = await create(self, *arguments)
        self.is_dirty = False
        return result

    swap(OwnKey, "_create", forget)


def queue_jumped() -> None:
    """Hold as soon as the own key is there."""

    def created(self: Place, revision: int, found: object, limit: int = 0) -> None:
        self.revision = revision
        self.move(PlaceState.HELD)

    swap(Place, "created", created)


def fence_without_guard() -> None:
    """Write in the name of what is held without asking whether it is."""

    async def send(self: Any, then: Any, timeout: Any, retry: Any = None) -> Any:
        return await self._writer.txn().then(*then).commit(timeout=timeout, retry=retry)

    swap(FencedWriter, "_send", send)


def no_cancellation() -> None:
    """Let the block go on after a loss."""
    init = held.Held.__init__

    def ignore(self: Any, options: Any, *arguments: Any, **keywords: Any) -> None:
        init(self, replace(options, cancels=False), *arguments, **keywords)

    swap(held.Held, "__init__", ignore)


def local_deadline_too_late() -> None:
    """Believe in a lease for longer than it was acknowledged for."""
    swap(held.Held, "_is_late", lambda self: False)
    swap(held.Held, "_on_lease_lost", lambda self, error: self._loop.call_later(5.0, self.lose, "late"))


def stale_proclamation() -> None:
    """Guard a proclamation by the life of the key alone, as Go does: an older copy replaces a newer value."""

    async def propose(self: Any, held: Any, new: bytes, timeout: Any) -> Any:
        present = op.get(held.key)
        alive = Key(held.key).create_revision == held.revision
        txn = op.txn(when=[alive], then=[op.put(held.key, new, ignore_lease=True), present], otherwise=[present])
        return (await self._store.do(txn, timeout=timeout, retry="always"))[present]

    swap(Leadership, "_propose", propose)


def youngest_observed() -> None:
    """Tell the youngest candidate (#18163)."""

    def youngest(self: Any) -> Any:
        kv = next(reversed(self._alive.values()), None)
        return (None, (b"", 0, b"")) if kv is None else (Leader.of(kv), (kv.key, kv.create_revision, kv.value))

    swap(Candidates, "_oldest", youngest)


def changes_swallowed() -> None:
    """Tell only the last change of a batch."""
    changed = Candidates.changed
    swap(Candidates, "changed", lambda self, *arguments: changed(self, *arguments)[-1:])


def swap(owner: Any, name: str, value: object) -> None:
    """Replace what an owner has under a name by something that is called alike."""
    if not hasattr(owner, name):
        raise AttributeError(f"{owner} has no {name}: this sabotage is out of date")
    before = getattr(owner, name)
    if callable(before) and callable(value):
        _check_arguments(before, value, f"{owner}.{name}")
    setattr(owner, name, value)


def _check_arguments(before: Callable[..., Any], value: Callable[..., Any], what: str) -> None:
    """Check that a function can be called as the one that it replaces, or it would break something else."""
    given = inspect.signature(before).parameters.values()
    positional = [each.name for each in given if each.kind is each.POSITIONAL_OR_KEYWORD]
    named = {each.name: each for each in given if each.kind is each.KEYWORD_ONLY}
    try:
        inspect.signature(value).bind(*positional, **named)
    except TypeError as error:
        raise TypeError(f"{what}: {error}: this sabotage is out of date") from error


ALL: Final[Mapping[str, Callable[[], None]]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        *(release_without_guard, no_own_key_check, get_then_watch, get_then_watch_an_old_revision),
        *(lease_returned_dirty, queue_jumped, fence_without_guard, no_cancellation, local_deadline_too_late),
        *(stale_proclamation, youngest_observed, changes_swallowed),
    )
}
"""By name: a function that breaks it so that a rule is broken."""
