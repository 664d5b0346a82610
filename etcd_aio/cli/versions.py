"""The lines that say which etcd-aio runs: for the verb version, and for `python -m etcd_aio --version`."""

from collections.abc import Iterator
from typing import Final

from etcd_aio import __version__
from etcd_aio.codec import BACKEND

_ETCDCTL: Final = "3.7.3"  # whose verbs, flags and formats these are


def version_lines() -> Iterator[str]:
    """The version of etcd-aio, that of the etcdctl that it follows, and what decodes large replies."""
    yield f"etcd-aio version: {__version__}"
    yield f"etcdctl version: {_ETCDCTL}"
    yield f"API version: {_ETCDCTL.rpartition('.')[0]}"
    yield f"Codec: {BACKEND}"
