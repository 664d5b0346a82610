"""torch: `torchrun --rdzv-backend=etcd-v3 --rdzv-endpoint=m1:2379,m2:2379,m3:2379`, and a Store for torch.distributed.

A torch that looks for entry points finds the backend by itself; an older one needs `register()` in the process of
torchrun, as `python -m etcd_aio.contrib.torch` does it. Nothing here imports torch before it is used, since torch
loads the entry point while it is being imported.
"""

from typing import TYPE_CHECKING, Final

from etcd_aio.contrib.torch.entry import create_handler as create_handler
from etcd_aio.contrib.torch.entry import handler_creator as handler_creator
from etcd_aio.contrib.torch.entry import register as register
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
