"""Shortcuts to recipes: transactions as functions."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from etcd_aio.base.call_options import UNSET, Timeout
from etcd_aio.shortcuts.client_like import ClientLike
from etcd_aio.store import Writer
from etcd_aio.types import KeyLike

if TYPE_CHECKING:
    from etcd_aio.recipes import Isolation, StmResult, Transaction

T = TypeVar("T")


class RecipeShortcuts:
    """The shortcuts to recipes."""

    async def stm(
        self: ClientLike,
        function: "Callable[[Transaction], Awaitable[T]]",
        *,
        isolation: "Isolation" = "serializable_snapshot",
        prefetch: Iterable[KeyLike] = (),
        max_attempts: int = 100,
        writer: Writer | None = None,
        timeout: Timeout = UNSET,
    ) -> "StmResult[T]":
        """Run an async function as a transaction: what it reads and writes takes effect at once, or not at all.

            async def transfer(tx: Transaction) -> int:
                a, b = int((await tx.get("a")).text()), int((await tx.get("b")).text())
                tx.put("a", str(a - 10))
                tx.put("b", str(b + 10))
                return b + 10

            result = await client.stm(transfer)

        If another writer has changed what the function has read, it runs again, on the newer state. So it must have no
        side effects but those of its transaction. An exception of the function ends the call; nothing is written then.

        Args:
            function: gets a `Transaction`, which it reads and writes through.
            isolation: `"serializable_snapshot"`: all reads are of one revision, and no key that was read or is written
                has changed since. `"serializable"`: the same, but keys that are only written may have changed.
                `"repeatable_reads"`: each key is read once, and has not changed since, but the reads are of several
                revisions. `"read_committed"`: each read is of the newest state, and may be out of date.
            prefetch: keys that are read first, in one round trip. Default: none.
            max_attempts: how many commits are sent at most. Default: 100; tasks of one client that change the same
                keys wait for each other, so only conflicts with other clients come near it.
            writer: sends the commits, such as `client.exactly_once()`, which finds out what became of one whose answer
                was lost; or `lock.fenced`. Default: the client.
            timeout: seconds for the whole call, with all attempts and the function; None for no limit.

        Returns:
            StmResult: the value of the function, the revision of the commit, and how often the function has run.

        Raises:
            TxnConflictError: every attempt met a conflict. Nothing was applied.
            EtcdTimeoutError: the time was over. If `maybe_applied` is False, nothing was applied.
            InvalidRequestError, TypeError: an argument is invalid, or the transaction has more reads or writes than
                etcd accepts in a txn.
            EtcdError: as every call; if `maybe_applied` is True, the transaction may have been applied, and was not
                repeated: it might have been applied twice.

        Cancellation: the transaction was applied or not, as with every write.
        """
        from etcd_aio.recipes import run_stm

        deadline = self._invoker.deadline(timeout, asyncio.get_running_loop().time())
        return await run_stm(
            self,
            self._turnstile(),
            function,
            isolation=isolation,
            prefetch=prefetch,
            max_attempts=max_attempts,
            writer=writer,
            deadline=deadline,
        )
