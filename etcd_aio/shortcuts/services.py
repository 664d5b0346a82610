"""Shortcuts to the registration and the discovery of services."""

from typing import TYPE_CHECKING

from etcd_aio.base.call_options import UNSET, Timeout
from etcd_aio.shortcuts.client_like import ClientLike
from etcd_aio.types import KeyLike

if TYPE_CHECKING:
    from etcd_aio.services import Endpoints, JSONValue, OnConflict, Registration


class ServiceShortcuts:
    """The shortcuts to services."""

    def register(
        self: ClientLike,
        target: KeyLike,
        address: str,
        *,
        metadata: "JSONValue" = None,
        name: str | None = None,
        ttl: int = 10,
        on_conflict: "OnConflict" = "keep",
        drain: float = 0.0,
        timeout: Timeout = UNSET,
    ) -> "Registration":
        """Register an endpoint of a service: `async with client.register("svc/web", "10.0.0.1:80"):`.

        The entry is there while the block runs, and ends soon after a crash of the process. After an outage of any
        length it is put again without any help. The format is that of Go's `naming/endpoints`, so its resolver finds
        the endpoint too.

        Args:
            target: the service. The key is `<target>/<name>`.
            address: where the endpoint is reached. An address belongs to one process: an equal entry of an earlier
                process is taken over.
            metadata: what others learn with the address: any value that JSON can express.
            name: the end of the key. Default: the address.
            ttl: seconds until the entry ends after a crash of this process, or in an outage. Default: 10, as of locks.
                etcd raises values below its minimum, 2 by default.
            on_conflict: if the key has a different entry of another process, `"keep"` leaves it alone until it is
                gone, and `"replace"` replaces it.
            drain: seconds that leaving the block waits after the entry was deleted, so that those who follow the
                service stop using the endpoint before it ends. Default: 0.
            timeout: seconds for the grant of the lease, and again for the put, on entering.

        Raises:
            InvalidRequestError, TypeError: an argument is invalid.
        """
        from etcd_aio.services import Registration

        return Registration(
            self,
            target,
            address,
            metadata=metadata,
            name=name,
            ttl=ttl,
            on_conflict=on_conflict,
            drain=drain,
            timeout=timeout,
        )

    def resolve(self: ClientLike, target: KeyLike, *, keep_current: float | None = None) -> "Endpoints":
        """The endpoints of a service, kept up to date in memory: `async with client.resolve("svc/web") as web:`.

            web.endpoints                                  what is known now; no await
            web.pick().address                             the next one, in turn
            async for endpoints in web.changes(): ...      now, and after each change

        It finds what `register` and Go's `naming/endpoints` have put under `<target>/`.

        Args:
            target: the service.
            keep_current: seconds between two reads of the store's revision in the background, so that `age` shows how
                old the endpoints may be. Default: None, the store is asked only when a caller waits for it.

        Raises:
            InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
        """
        from etcd_aio.services import Endpoints

        timeout = self._invoker.deadline(UNSET, 0.0)  # the client's default, in seconds
        made = Endpoints(self, target, keep_current=keep_current, timeout=timeout)
        self._blocks_to_close().add(made)
        return made
