"""Kubernetes, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.recipes.kubernetes`: do not edit.
"""

from typing import ClassVar

from etcd_aio.arguments import KeyLike, LeaseLike, ValueLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.portal import Facade
from etcd_aio.recipes import Found, ListPage, OptimisticResult
from etcd_aio.recipes import Kubernetes as AsyncKubernetes
from etcd_aio.sync.calls.store_calls import StoreCalls
from etcd_aio.sync.calls.writer import Writer


class Kubernetes(Facade):
    """The calls that Kubernetes makes to etcd: `client.kubernetes()`.

    Reads, lists by pages, and writes that hold only if the key is as the caller has seen it. The two optimistic writes
    serve every program that does "read, change, write back": they are one txn each, and their result is right also if
    the answer was lost, but for one case: see `writer`.

    Args:
        store: the client.
        writer: makes the writes, such as `client.exactly_once()`. Without it, the outcome of a write whose answer was
            lost is read from the history of the key, where two writers that put the same bytes cannot be told apart: a
            counter that both raise from 5 to 6 may tell both that they succeeded.
        timeout: seconds for a call that has no `timeout` of its own; None for no limit.
    """

    _survives_fork: ClassVar[bool] = True

    def __init__(self, store: StoreCalls, *, writer: Writer | None = None, timeout: Timeout = UNSET) -> None:
        self._construct(AsyncKubernetes, store, writer=writer, timeout=timeout)

    def get(self, key: KeyLike, *, revision: int = 0, timeout: Timeout = UNSET) -> Found:
        """Get one key, with the revision of the store: as it was at a revision; 0 is now.

        Raises:
            EmptyKeyError: the key is empty.
            CompactedError: the revision was compacted.
            EtcdError: as every read.
        """
        return self._run(self._aio.get, key, revision=revision, timeout=timeout)

    def list(
        self,
        prefix: KeyLike,
        *,
        revision: int = 0,
        limit: int = 500,
        continue_key: KeyLike | None = None,
        timeout: Timeout = UNSET,
    ) -> ListPage:
        """Get one page of the keys with a prefix.

            page = kubernetes.list("pods/")
            while page.next_key is not None:
                page = kubernetes.list("pods/", revision=page.revision, continue_key=page.next_key)

        Args:
            prefix: the prefix.
            revision: read the store as it was at this revision; 0 is now. All pages of a list need the same one.
            limit: the most keys of the page; 0 is no limit.
            continue_key: where the page begins: the `next_key` of the page before.
            timeout: seconds for the whole call.

        Raises:
            InvalidRequestError: `continue_key` is not within the prefix, or a number is out of bounds.
            CompactedError: the revision was compacted; its `compact_revision` is the oldest one that can still be read,
                or 0 if that could not be found out within two seconds.
            EtcdError: as every read.
        """
        return self._run(
            self._aio.list, prefix, revision=revision, limit=limit, continue_key=continue_key, timeout=timeout
        )

    def count(self, prefix: KeyLike, *, timeout: Timeout = UNSET) -> int:
        """Count the keys with a prefix.

        Raises:
            EtcdError: as every read.
        """
        return self._run(self._aio.count, prefix, timeout=timeout)

    def optimistic_put(
        self,
        key: KeyLike,
        value: ValueLike,
        expected_revision: int,
        *,
        lease: LeaseLike | None = None,
        get_on_failure: bool = True,
        timeout: Timeout = UNSET,
    ) -> OptimisticResult:
        """Put a value if the key was last changed at the expected revision.

        It is applied at most once. If its answer is lost, the put is sent again, and its outcome is found out, unless
        another client has put the same bytes under the same lease: see `writer` of the class.

        Args:
            key: the key.
            value: the new value.
            expected_revision: the `mod_revision` that the caller has seen; 0: the key must not exist. Such a put is not
                sent again when its answer is lost, since the key may have been created and deleted meanwhile.
            lease: the lease to attach the key to, or its id. Without it the key loses the lease it had.
            get_on_failure: read the key in the same call if the put is not made. Default: True; without it, most
                callers need a second call to try again.
            timeout: seconds for the whole call.

        Returns:
            OptimisticResult: whether the put was made.

        Raises:
            InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid. Nothing was sent.
            LeaseNotFoundError: there is no such lease.
            OutcomeUnknownError: of a `writer` of exactly-once writes.
            EtcdError: as every write. `maybe_applied` is True if the answer was lost and the outcome could not be found
                out in time, or if the history that tells is compacted.

        Ctrl-C: the put may have been made, or not.
        """
        return self._run(
            self._aio.optimistic_put,
            key,
            value,
            expected_revision,
            lease=lease,
            get_on_failure=get_on_failure,
            timeout=timeout,
        )

    def optimistic_delete(
        self, key: KeyLike, expected_revision: int, *, get_on_failure: bool = True, timeout: Timeout = UNSET
    ) -> OptimisticResult:
        """Delete a key if it was last changed at the expected revision.

        Args:
            key: the key.
            expected_revision: the `mod_revision` that the caller has seen; 0: the key must not exist, and nothing
                changes.
            get_on_failure: read the key in the same call if it is not deleted.
            timeout: seconds for the whole call.

        Returns:
            OptimisticResult: whether the key was deleted. If the answer was lost, and the key was deleted by another
                client or with its lease right after the expected revision, this counts as the own deletion.

        Raises:
            EtcdError: as `optimistic_put`.

        Ctrl-C: the key may have been deleted, or not.
        """
        return self._run(
            self._aio.optimistic_delete, key, expected_revision, get_on_failure=get_on_failure, timeout=timeout
        )
