"""Shortcuts to other ways to use the store: exactly-once writes, caches, namespaces, ordered reads, Kubernetes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from etcd_aio.base.call_options import UNSET
from etcd_aio.shortcuts.client_like import ClientLike
from etcd_aio.store import Writer
from etcd_aio.types import KeyLike, KeyRange, KeyValue

if TYPE_CHECKING:
    from etcd_aio.cache import Cache
    from etcd_aio.once import ExactlyOnce
    from etcd_aio.recipes import Kubernetes
    from etcd_aio.views import Namespace, Ordered

T = TypeVar("T")


class StoreShortcuts:
    """The shortcuts to other ways to use the store."""

    def exactly_once(
        self: ClientLike,
        *,
        slots: int = 64,
        ttl: int = 300,
        window: int = 24 * 3600,
        prefix: KeyLike = "__etcd_aio/once/",
    ) -> "ExactlyOnce":
        """Writes that are applied exactly once: `async with client.exactly_once() as once: await once.put("k", "v")`.

        One object for each client is enough; tasks may share it. Nothing is sent before its first write.

        Args:
            slots: the most writes at a time; more wait for their turn. Each is a key on the server.
            ttl: seconds for which these keys outlive a crash of this process. They are under one lease; an outage that
                is longer ends it, and the next write needs another one.
            window: seconds for which an idempotency id is remembered at least, from the end of the call on. Default:
                a day. If a call takes longer than a day, its window begins at the end of its first day.
            prefix: of all these keys. With authentication, the user needs the permission to read and write it.

        Raises:
            InvalidRequestError, TypeError: an argument is invalid.
        """
        from etcd_aio.once import ExactlyOnce

        timeout = self._invoker.deadline(UNSET, 0.0)  # the client's default, in seconds
        block = ExactlyOnce(self, slots=slots, ttl=ttl, window=window, prefix=prefix, timeout=timeout)
        self._blocks_to_close().add(block)
        return block

    @overload
    def cache(
        self: ClientLike,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        decode: None = None,
        keep_current: float | None = None,
        fallback: bool = True,
        max_outage: float = 10.0,
    ) -> "Cache[KeyValue]": ...

    @overload
    def cache(
        self: ClientLike,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        decode: Callable[[bytes], T],
        on_error: Callable[[bytes, Exception], None] | None = None,
        keep_current: float | None = None,
        fallback: bool = True,
        max_outage: float = 10.0,
    ) -> "Cache[T]": ...

    def cache(
        self: ClientLike,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        decode: Callable[[bytes], Any] | None = None,
        on_error: Callable[[bytes, Exception], None] | None = None,
        keep_current: float | None = None,
        fallback: bool = True,
        max_outage: float = 10.0,
    ) -> "Cache[Any]":
        """The keys of a range in memory, kept like the store: `async with client.cache(prefix="cfg/") as cache:`.

            cache.get("cfg/a"), cache["cfg/a"], cache.range(prefix="cfg/web/")    what is here now; no await
            await cache.read("cfg/a")                                             linearizable
            await cache.wait_current()                                            what is read now is linearizable
            async for revision, changed in cache.changes(): ...                   what has changed

        Entering reads all keys. A watch follows them, over lost connections, failed members and compactions. Every read
        is of the store at one revision.

        Args:
            key: this key alone; with `range_end`, the first key of an interval.
            range_end: the key before which the interval ends.
            prefix: every key that begins with this.
            from_key: every key from this one on.
            all_keys: every key.
            decode: turns a value into what is read; called once for each change. If it raises, the key keeps its value
                of before, unless it was deleted in between. Default: None, `KeyValue`s are read.
            on_error: called with the key and the exception if `decode` raises. Default: None, the first one of each key
                is logged, without the value.
            keep_current: seconds, more than 0, between two reads of the store's revision in the background. Reads with
                `max_staleness` above it do not wait then, while all is well, and `age` grows visibly if the cluster is
                out of reach. Default: None, the store is asked only when a caller waits.
            fallback: whether `read` goes to the server if the cache is not current in time.
            max_outage: seconds without any member to watch on, after which `state` is LAGGING. Default: 10, which
                outlasts a leader election several times.

        Returns:
            Cache: nothing is sent before it is entered.

        Raises:
            InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
        """
        from etcd_aio.cache import Cache

        block: Cache[Any] = Cache(
            self,
            KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys),
            decode=decode,
            on_error=on_error,
            keep_current=keep_current,
            fallback=fallback,
            max_outage=max_outage,
            timeout=self._invoker.deadline(UNSET, 0.0),  # the client's default, in seconds
        )
        self._blocks_to_close().add(block)
        return block

    def namespace(self: ClientLike, prefix: KeyLike) -> "Namespace":
        """The keys that begin with a prefix, as a store of their own, without the prefix.

            app = client.namespace("app/")
            await app.put("color", "blue")  # the key app/color

        It has all calls about keys, watches and leases, and all shortcuts. It shares the connections, streams and
        leases of this client, and needs no closing. A namespace of a namespace is one of both prefixes.

        Args:
            prefix: the prefix, as it is: write the separator that ends it.

        Returns:
            Namespace: nothing is sent before it is used.

        Raises:
            EmptyKeyError: the prefix is empty.
            InvalidRequestError, TypeError: it is not a key.
        """
        from etcd_aio.views import Namespace

        return Namespace(self, prefix)

    def ordered(self: ClientLike) -> "Ordered":
        """A store whose reads never go back: `view = client.ordered()`.

            await view.put("k", "1")
            await view.get("k", serializable=True)      never older than what was read or written through `view`

        A serializable read that is answered by a member that is behind is repeated once, linearizably. Each view
        has its own mark, so a session or a request may have one of its own.
        """
        from etcd_aio.views import Ordered

        return Ordered(self)

    def kubernetes(self: ClientLike, *, writer: Writer | None = None) -> "Kubernetes":
        """The calls that Kubernetes makes to etcd: reads, pages of a prefix, and optimistic writes.

            kubernetes = client.kubernetes()
            found = await kubernetes.get("pods/a")
            result = await kubernetes.optimistic_put("pods/a", "new", found.kv.mod_revision if found.kv else 0)

        Args:
            writer: makes the writes, such as `client.exactly_once()`. Default: the client; then a lost answer is
                replaced by the history of the key.
        """
        from etcd_aio.recipes import Kubernetes

        return Kubernetes(self, writer=writer, timeout=self._invoker.deadline(UNSET, 0.0))  # the client's default
