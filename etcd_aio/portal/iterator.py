"""BlockingIterator: `for` in front of `async for`, and `next` with a limit of time.

A signal handler may raise when a function begins, and after a call by `*` or of a function in C. So an item that was
taken is returned without any of these.

A step that is interrupted twice is left before it has ended, and may still take an item. So the next step waits for it.
"""

import asyncio
from typing import Any, Generic, Self, TypeVar, cast

from etcd_aio.base.deadline import deadline_after
from etcd_aio.errors import EtcdError, EtcdTimeoutError
from etcd_aio.portal.facade import Facade

T_co = TypeVar("T_co", covariant=True)


class BlockingIterator(Facade, Generic[T_co]):
    """A facade that is iterated over, by one thread at a time."""

    _given_back: list[object] | None = None
    """Items that were taken for a step that Ctrl-C has ended. The next step returns them."""

    _is_left = False
    """Whether a step may have been left before it has ended."""

    _stepping: "asyncio.Task[object] | None" = None
    """The task of the step, in the loop's thread, where it is forgotten as well: see `Call`."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T_co:
        return self._take(_step, ())

    def next(self, timeout: float | None = None) -> T_co:
        """Wait for the next item.

        Args:
            timeout: seconds to wait for it at most. Default: None, no limit.

        Raises:
            EtcdTimeoutError: none came in time. Nothing is lost: the next call goes on where this one ended.
            InvalidRequestError: the timeout is no time.
            StopIteration: there are no more.
        """
        deadline_after(timeout, 0.0)
        return self._take(_step_within, (timeout,))

    def _take(self, step: Any, arguments: tuple[object, ...]) -> T_co:
        back = self._given_back
        if back is None:
            back = self._given_back = []
        iterator = self._aio
        if self._is_left:
            self._portal.call(self._until_left)
        if back:
            item = back[0]
            del back[0]
        else:
            self._is_left = True
            try:
                item = self._portal.call(self._step, (step, iterator, *arguments), undo=back.append)
            except StopAsyncIteration:
                self._is_left = False
                raise StopIteration from None
            except EtcdError:
                self._is_left = False
                raise
            self._is_left = False
        try:
            return cast("T_co", self._wrap(item))
        except BaseException:  # a signal handler has raised
            back.insert(0, item)
            raise

    # In the loop's thread.

    async def _step(self, step: Any, *arguments: object) -> object:
        self._stepping = asyncio.current_task()
        try:
            return await step(*arguments)
        finally:
            self._stepping = None

    async def _until_left(self) -> None:
        task = self._stepping
        if task is not None and task.get_loop() is asyncio.get_running_loop():  # else this is a forked child
            await asyncio.wait({task})
        await asyncio.sleep(0)  # its call gives back what it has taken, right after the task
        self._is_left = False


class BufferedIterator(BlockingIterator[T_co]):
    """An iterator whose object has some items already: these cost no switch of threads."""

    def _take(self, step: Any, arguments: tuple[object, ...]) -> T_co:
        item: Any = None if self._is_left or self._given_back else self._aio.take_ready()
        if item is None:
            return super()._take(step, arguments)
        return item  # type: ignore[no-any-return] # a `cast` is a call, in which a signal handler could raise


async def _step(iterator: Any) -> object:
    return await anext(iterator)


async def _step_within(iterator: Any, timeout: float | None) -> object:
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            return await anext(iterator)
    except TimeoutError:  # some errors of calls are one too
        if not limit.expired():
            raise
        raise EtcdTimeoutError(f"no item came within {timeout:g} s") from None
