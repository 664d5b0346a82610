"""torch: `torchrun --rdzv-backend=etcd-v3 --rdzv-endpoint=m1:2379,m2:2379,m3:2379`, and a Store for torch.distributed.

A torch that looks for entry points finds the backend by itself; an older one needs `register()` in the process of
torchrun, as `python -m etcd_aio.contrib.torch` does it. Nothing here imports torch before it is used, since torch
loads the entry point while it is being imported.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from etcd_aio.contrib.torch.parameters import NAME as NAME

if TYPE_CHECKING:
    from etcd_aio.contrib.torch.backend import EtcdBackend as EtcdBackend
    from etcd_aio.contrib.torch.backend import create_backend as create_backend
    from etcd_aio.contrib.torch.store import EtcdStore as EtcdStore

_PLACES: Final = {"EtcdBackend": "backend", "create_backend": "backend", "EtcdStore": "store"}


def __getattr__(name: str) -> object:
    """Import what needs torch at its first use."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from etcd_aio.contrib.missing import missing

    try:
        module = import_module(f"{__name__}.{_PLACES[name]}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        raise missing(__name__, "torch", error) from error
    return getattr(module, name)


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
