"""Entry: how torch comes to the backend. Imports torch when it is called, since torch loads it while being imported."""

from collections.abc import Callable
from typing import Any

from etcd_aio.contrib.torch.parameters import NAME


def create_handler(params: Any) -> Any:
    """Make the rendezvous handler of a job.

    Args:
        params: torch's `RendezvousParameters`; see `Parameters` for its options.

    Raises:
        RendezvousConnectionError: etcd cannot be reached.
        ValueError: an option is invalid.
    """
    from torch.distributed.elastic.rendezvous import dynamic_rendezvous  # pyright: ignore[reportMissingImports]

    from etcd_aio.contrib.torch.backend import create_backend

    backend, store = create_backend(params)
    return dynamic_rendezvous.create_handler(store, backend, params)


def handler_creator() -> Callable[[Any], Any]:
    """The entry point: what torch registers."""
    return create_handler


def register() -> None:
    """Register the backend where torch does not look for entry points; harmless where it does."""
    from torch.distributed.elastic.rendezvous import (  # pyright: ignore[reportMissingImports]
        rendezvous_handler_registry,
    )

    rendezvous_handler_registry.register(NAME, create_handler)
