"""EtcdBackend: the state of a rendezvous in etcd, for torch's `DynamicRendezvousHandler`."""

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

from torch.distributed.elastic.rendezvous.api import (  # pyright: ignore[reportMissingImports]
    RendezvousConnectionError,
    RendezvousStateError,
)
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (  # pyright: ignore[reportMissingImports]
    RendezvousBackend,
)

from etcd_aio.contrib.torch.parameters import NAME, read_parameters
from etcd_aio.contrib.torch.run_lease import RunLease
from etcd_aio.contrib.torch.shared_keys import SharedKeys
from etcd_aio.contrib.torch.state import CorruptStateError, SavedState
from etcd_aio.contrib.torch.store import EtcdStore
from etcd_aio.contrib.torch.swaps import Swaps
from etcd_aio.errors import EtcdError
from etcd_aio.sync import Client

_TTL: Final = 7200  # seconds that the keys outlive a job, as of torch's own backend
_FIRST_SECONDS: Final = 10.0  # for the first connection: a wrong address should not take a minute
_FAILED: Final = "The connection to etcd has failed. See inner exception for details."


class EtcdBackend(RendezvousBackend):
    """A state that agents replace by compare-and-swap, with a fencing token.

    Args:
        state: the state.
    """

    def __init__(self, state: SavedState) -> None:
        self._state = state

    @property
    def name(self) -> str:
        """The name, for `--rdzv-backend`."""
        return NAME

    def get_state(self) -> tuple[bytes, int] | None:
        """See torch."""
        with _translated():
            return self._state.get()

    def set_state(self, state: bytes, token: object = None) -> tuple[bytes, int, bool] | None:
        """See torch."""
        with _translated():
            return self._state.set(state, token)


@contextmanager
def _translated() -> Iterator[None]:
    """A block whose errors are torch's; ours is the cause."""
    try:
        yield
    except CorruptStateError as error:
        raise RendezvousStateError("The state object is corrupt. See inner exception for details.") from error
    except EtcdError as error:
        raise RendezvousConnectionError(_FAILED) from error


def create_backend(params: Any) -> tuple[EtcdBackend, EtcdStore]:
    """Make the backend and the store of a job, with one client, which is closed when the process ends.

    Args:
        params: torch's `RendezvousParameters`.

    Raises:
        RendezvousConnectionError: etcd cannot be reached.
        ValueError: an option is invalid.
    """
    if not params.run_id:
        raise ValueError("The run id must be a non-empty string.")
    parameters = read_parameters(params.endpoint, params.config)
    timeout = float(parameters.read_timeout)
    client = Client(**parameters.client_options())
    try:
        with _translated():
            client.ping(min(timeout, _FIRST_SECONDS))
    except BaseException:  # Ctrl-C, too: nothing else would close the client
        client.close()
        raise
    atexit.register(client.close)
    run = quote(params.run_id, safe="")
    lease = RunLease(client, _TTL, timeout)
    swaps = Swaps(client, lease, timeout, f"swaps/{run}/")
    shared = client.namespace(f"store/{run}/")
    keys = SharedKeys(shared, Swaps(shared, lease, timeout, "swaps/"))
    return EtcdBackend(SavedState(client, swaps, f"rendezvous/{run}")), EtcdStore(keys)
