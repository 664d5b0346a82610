"""Losable: what is held, and may be lost. A thread cannot be cancelled, so `on_lost` and `check` tell of it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Self, TypeAlias

from etcd_aio.arguments import check_blocking_function
from etcd_aio.base.aio import start_background_task
from etcd_aio.errors import ClientUsageError, EtcdError, InvalidRequestError
from etcd_aio.portal.block import Block
from etcd_aio.portal.callback import own_thread
from etcd_aio.portal.facade import Facade

OnLost: TypeAlias = Callable[[EtcdError], object]


class LosableMaker(Facade):
    """A facade with an `on_lost`, which it hands to what it makes."""

    _on_lost: OnLost | None = None

    def _telling(self, on_lost: OnLost | None) -> Self:
        """Have a function called with the error of a loss, in a thread of its own.

        Raises:
            InvalidRequestError: it is no function.
            TypeError: it is an async one.
        """
        if on_lost is not None:
            if not callable(on_lost):
                raise InvalidRequestError(f"on_lost is a function or None in blocking code, not {on_lost!r}")
            check_blocking_function(on_lost)
        self._on_lost = on_lost
        return self

    def _wrap(self, value: Any) -> Any:
        facade = super()._wrap(value)
        on_lost = self._on_lost
        if on_lost is not None and facade is not self and isinstance(facade, LosableMaker):
            facade._telling(on_lost)
        return facade


class Losable(LosableMaker, Block):
    """A block that holds something while it runs."""

    def _after_entering(self) -> Callable[[], object] | None:
        return None if self._on_lost is None else partial(_watch, self._object, self._on_lost)

    def _telling(self, on_lost: OnLost | None) -> Self:
        super()._telling(on_lost)
        if getattr(self._object, "is_held", False):  # it was entered before it got this facade
            self._watch_loss()
        return self

    def _watch_loss(self) -> None:
        """Tell of a loss from now on: this was acquired without a block."""
        if self._on_lost is not None:
            self._run(_watch, self._object, self._on_lost)

    def _acquire(self, acquire: Callable[..., object], **keywords: object) -> Any:
        """Acquire it without a block. If Ctrl-C comes too late to prevent that, it is released.

        Args:
            acquire: the method of the object. It returns False if it is not held now.
            keywords: of the method.
        """
        aio = self._aio

        def release(is_acquired: object) -> "asyncio.Task[None] | None":
            return None if is_acquired is False else start_background_task(_release(aio), name="etcd_aio.sync release")

        is_acquired = self._portal.call(acquire, (), keywords, undo=release)
        if is_acquired is not False:
            self._watch_loss()
        return is_acquired

    def _make_again(self) -> None:
        if getattr(self._object, "is_held", False) or getattr(self._object, "is_lost", False):  # by the parent
            self._made_by = None
        super()._make_again()

    def check(self) -> None:
        """Raise an error unless it is held now: a thread cannot be cancelled, so a long block asks from time to time.

        Raises:
            LockLostError, LeadershipLostError, LeaseLostError, JobLostError: it was lost.
            NotHeldError, NotLeaderError, ClientUsageError: it is not held.
        """
        losable = _losable(self._aio)
        holds = getattr(losable, "is_held", None)
        if not holds and losable.is_lost:
            error = self._run(losable.lost)
            if error is not None:
                raise error
        elif holds is False:
            if hasattr(type(losable), "fencing_token"):
                losable.fencing_token  # noqa: B018 # raises, since there is none
            raise ClientUsageError("the lease is not held: it was not entered, or it has ended")


async def _release(aio: Any) -> None:
    with suppress(EtcdError):  # it is lost; or its lease ends
        await aio.release()


def _losable(aio: Any) -> Any:
    """The object that may be lost: this one, or the lease of a session."""
    return aio if hasattr(aio, "lost") else aio.lease


def _watch(held: Any, on_lost: OnLost) -> None:
    """Have a function called if it is lost from now on, in a thread of its own."""
    tell = own_thread(on_lost, "etcd_aio.on_lost")
    start_background_task(_tell(_losable(held), tell), name="etcd_aio.on_lost")


async def _tell(losable: Any, tell: Callable[[EtcdError], None]) -> None:
    try:
        error = await losable.lost()
    except asyncio.CancelledError:  # the loop's thread ends; it may be lost by that
        if losable.is_lost:
            tell(await losable.lost())
        raise
    if error is not None:
        tell(error)
