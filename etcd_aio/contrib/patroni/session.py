"""Session: the lease of a node, renewed only when Patroni's loop asks for it.

Nothing else renews it. A node whose loop hangs must lose its lease, so that another one can become the primary.
"""

from collections.abc import Callable

from etcd_aio.errors import LeaseNotFoundError
from etcd_aio.sync import Client


class Session:
    """The lease.

    Args:
        clock: tells seconds.

    Attributes:
        id: of the lease; None if there is none, or it is known to be gone.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._renewed = 0.0
        self._is_due = True
        self.id: int | None = None

    def make_due(self) -> None:
        """The next `renew` renews it, however young it is."""
        self._is_due = True

    def renew(self, client: Client, ttl: int, period: float, timeout: Callable[[], float]) -> None:
        """Renew the lease if it is due, or older than a period; grant one if there is none.

        Args:
            client: the client.
            ttl: seconds, of a new lease.
            period: seconds.
            timeout: the seconds that are left.

        Raises:
            EtcdError: it could not be renewed or granted.
        """
        if self.id is not None and not self._is_due and self._clock() < self._renewed + period:
            return
        began = self._clock()
        if self.id is not None:
            try:
                client.leases.keep_alive_once(self.id, timeout=timeout())
            except LeaseNotFoundError:
                self.id = None
        if self.id is None:
            self.id = client.leases.grant(ttl, timeout=timeout()).id
        self._renewed, self._is_due = began, False
