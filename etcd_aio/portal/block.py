"""Block: `with` in front of `async with`. One task in the loop enters and leaves, as many blocks need."""

import asyncio
import warnings
from collections.abc import Callable
from contextlib import suppress
from threading import Thread, current_thread
from types import TracebackType
from typing import Any, Final, TypeAlias

from etcd_aio.base.aio import resolve, start_task
from etcd_aio.errors import ClientClosedError
from etcd_aio.portal.facade import Facade

ExcInfo: TypeAlias = "tuple[type[BaseException] | None, BaseException | None, TracebackType | None]"


class Block(Facade):
    """A facade that is used by `with`."""

    _entered: "list[tuple[Thread, Inside]] | None" = None
    """By which thread it is entered, the youngest last: a reentrant lock is so several times."""

    def __enter__(self) -> Any:
        aio = self._aio
        inside = Inside(aio, type(self).__name__, self._after_entering())
        entry = (current_thread(), inside)
        entered = self._entered
        if entered is None:
            entered = self.__dict__.setdefault("_entered", [])  # another thread may do so now
        entered.append(entry)
        try:
            value = self._portal.call(inside.enter, undo=lambda _: inside.leave_soon())
            inside.is_entered = True
            return self if value is aio else self._wrap(value)
        except BaseException:  # Ctrl-C, too
            entered.remove(entry)
            self._portal.soon(inside.leave_soon)  # if a signal handler has raised after the call
            raise

    def _after_entering(self) -> Callable[[], object] | None:
        """A function to run in the loop as soon as it is entered, if there is one."""
        return None

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        entered = [one for one in self._entered or () if one[1].is_entered]
        if not entered or self._portal.is_forked:  # after a fork it is the parent's
            return False
        caller = current_thread()
        own = [one for one in entered if one[0] is caller]
        entry = own[-1] if own else entered[-1]  # another thread may leave
        inside = entry[1]
        inside.is_entered = False
        thread = self._portal.thread
        try:
            if thread.is_over:  # the last client was closed within the block
                return inside.ended()
            return bool(self._portal.call(inside.leave, ((exc_type, exc, traceback),)))
        except ClientClosedError:
            if not thread.is_over:
                raise
            return inside.ended()  # closed right now
        except BaseException:  # Ctrl-C, too
            self._portal.soon(inside.leave_soon)  # if a signal handler has raised before the call
            raise
        finally:
            if self._entered is not None:
                with suppress(ValueError):  # another thread has left it, too
                    self._entered.remove(entry)

    def _end(self, aclose: Callable[[], object]) -> None:
        super()._end(aclose)
        entered, self._entered = self._entered, None
        for _, inside in entered or ():  # closing within the block leaves it
            self._portal.soon(inside.leave_soon)

    def __del__(self) -> None:
        entered, portal = getattr(self, "_entered", None), getattr(self, "_portal", None)
        if entered and portal is not None and not portal.is_forked and not portal.thread.is_over:
            for _, inside in entered:
                portal.soon(inside.leave_soon)
            if not portal.is_closed:
                warnings.warn(f"{self!r} was not closed: use `with`", ResourceWarning, stacklevel=2)

    def _make_again(self) -> None:
        if any(inside.is_entered for _, inside in self._entered or ()):
            self._made_by = None
        super()._make_again()


_held: Final[set["Inside"]] = set()  # the loop refers to their tasks weakly


class Inside:
    """The inside of an asynchronous block, in a task of its own.

    Args:
        block: the block.
        name: of its class, for the task.
        after: a function to run as soon as it is entered.

    Attributes:
        is_entered: whether it was entered by `with`, and is not being left.
    """

    def __init__(self, block: Any, name: str, after: Callable[[], object] | None = None) -> None:
        self.is_entered = False
        self._block = block
        self._name = name
        self._after = after

    async def enter(self) -> object:
        """Enter it. Cancellation cancels that, and leaves if it was too late."""
        loop = asyncio.get_running_loop()
        self._entered: asyncio.Future[object] = loop.create_future()
        self._leaving: asyncio.Future[ExcInfo] = loop.create_future()
        _held.add(self)
        self._task = start_task(self._hold(), name=f"etcd_aio.sync {self._name}")
        self._task.add_done_callback(lambda _: _held.discard(self))
        try:
            await asyncio.wait({self._entered})
        except asyncio.CancelledError:
            self._task.cancel()
            self.leave_soon()
            await asyncio.wait({self._task})
            raise
        return self._entered.result()

    def leave_soon(self) -> "asyncio.Task[object]":
        """Leave. Returns the task that does so."""
        resolve(self._leaving, (None, None, None))
        return self._task

    async def leave(self, raised: ExcInfo) -> object:
        """Leave it. Returns whether it swallows the exception."""
        resolve(self._leaving, raised)
        try:
            await asyncio.wait({self._task})
        except asyncio.CancelledError:
            self._task.cancel()
            await asyncio.wait({self._task})
            raise
        return self.ended()

    async def _loss(self) -> object:
        """The error of the loss, if the block has lost what it holds: as the thread ends, leaving does not raise it."""
        losable = getattr(self._block, "lease", self._block)  # of a session
        return await losable.lost() if getattr(losable, "is_lost", False) else None

    def ended(self) -> bool:
        """The outcome of leaving, once the loop's thread has ended.

        Raises:
            BaseException: what it has raised.
        """
        if not self._task.done() or self._task.cancelled():
            return False
        outcome = self._task.result()
        if isinstance(outcome, BaseException):
            raise outcome
        return bool(outcome)

    async def _hold(self) -> object:
        """Enter, wait, and leave; what leaving raises is the result."""
        try:
            value = await self._block.__aenter__()
            if self._after is not None:
                self._after()
        except BaseException as error:  # it belongs to the caller
            if isinstance(error, asyncio.CancelledError) and self._leaving.done():
                raise
            self._entered.set_exception(error)
            self._entered.exception()
            return None
        resolve(self._entered, value)
        raised: ExcInfo
        try:
            raised = await asyncio.shield(self._leaving)
        except asyncio.CancelledError as cancelled:  # the block is lost, or the thread ends
            raised = (type(cancelled), cancelled, cancelled.__traceback__)
        try:
            loss = None if self._leaving.done() else await self._loss()
            return await self._block.__aexit__(*raised) or loss
        except BaseException as error:  # the user's own may be a SystemExit, which no task may raise
            if error is raised[1]:
                return False
            return error
