"""BaseClient: how a blocking client begins and ends, also in a forked child."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from etcd_aio.errors import ClientClosedError, NoAvailableEndpointsError, OldClusterError
from etcd_aio.portal import Facade, Portal, in_worker


class BaseClient(Facade):
    """Base of the blocking client, which has its calls."""

    _survives_fork = True

    _is_closed: bool

    def _open(
        self, make: Callable[..., object], allow_in_loop: bool, /, *arguments: object, **keywords: object
    ) -> None:
        """Make the client of asyncio in the loop's thread.

        Args:
            make: its class, or another constructor.
            allow_in_loop: whether calls may block a thread in which an event loop runs.
            arguments: of the constructor.
            keywords: of the constructor.
        """
        token = keywords.get("token")
        if callable(token):
            keywords["token"] = in_worker(token, "etcd_aio.token")

        def again() -> BaseClient:
            made = type(self).__new__(type(self))
            made._is_closed = True  # if it fails, there is nothing to close
            made._portal = portal = Portal("client of etcd_aio.sync", allow_in_loop=allow_in_loop)
            try:
                made._object = portal.thread.call(make, arguments, keywords)
            except BaseException:  # Ctrl-C, too: there is no client to close
                portal.close()
                raise
            return made

        self._is_closed = True
        made = again()
        self._object, self._portal, self._made_by = made._object, made._portal, again
        self._is_closed = False

    def _make_again(self) -> None:
        if self._is_closed:
            raise ClientClosedError
        super()._make_again()

    def close(self) -> None:
        """Close the client: its calls, watches and leases end. Closing it twice is harmless.

        The process's thread for blocking clients ends with the last of them.
        """
        if self._is_closed:
            return
        portal = self._portal
        if portal.is_forked:  # the connections are the parent's
            self._is_closed = True
            return
        if threading.get_ident() == portal.thread.ident:  # by `__del__` of an owner: garbage is collected in any thread
            self._is_closed = True
            portal.leave_soon(self._object.aclose)
            return
        portal.check()
        self._is_closed = True
        try:
            portal.call(self._object.aclose)
        except ClientClosedError:  # the interpreter ends, and has stopped the thread
            return
        except BaseException:  # Ctrl-C, too
            portal.soon(self._object.aclose)  # if a signal handler has raised before the call
            raise
        finally:
            portal.close()

    def connect(self) -> Self:
        """Start the client: connect in the background. Returns the client.

        It does not wait for a connection, and does not fail without one: calls wait for a connection. Use
        `wait_ready()` to wait until an endpoint is connected, and `ping()` to check the cluster. Only with
        `reject_old_cluster` it waits, for the versions of the members. `with` calls it on entering.

        Raises:
            ClientUsageError: the client is closed.
            OldClusterError: a member is too old (only with `reject_old_cluster`). The client is closed then.
            NoAvailableEndpointsError: no member could be asked for its version (only with `reject_old_cluster`). The
                client is closed then.
        """
        try:
            self._run(self._aio.connect)
        except (OldClusterError, NoAvailableEndpointsError):
            self.close()
            raise
        return self

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_is_closed", True):
            self._is_closed = True
            self._portal.abandon(repr(self), self._object.aclose)
