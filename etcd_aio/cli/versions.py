"""The lines that say which etcd-aio runs: for the verb version, and for `python -m etcd_aio --version`."""

from collections.abc import Iterator
from importlib import import_module
from typing import Final

from etcd_aio import __version__

_ETCDCTL: Final = "3.7.3"  # whose verbs, flags and formats these are
_ACCELERATED: Final = {
    "codec": "etcd_aio.codec.speedups",
    "calls": "etcd_aio.transport.native.accelerated",
    "events": "etcd_aio.watch.event_source",
}
"""The module that chooses, for each part that may be accelerated."""


def version_lines() -> Iterator[str]:
    """The version of etcd-aio, that of the etcdctl that it follows, and which parts are accelerated."""
    yield f"etcd-aio version: {__version__}"
    yield f"etcdctl version: {_ETCDCTL}"
    yield f"API version: {_ETCDCTL.rpartition('.')[0]}"
    parts: dict[str, list[str]] = {}
    for part, module in _ACCELERATED.items():
        parts.setdefault(import_module(module).BACKEND, []).append(part)
    line = "; ".join(f"{', '.join(names)}: {backend}" for backend, names in parts.items())
    yield line[0].upper() + line[1:]
