"""Layers: stores that wrap a client, and change its keys or its reads; and what copies keys. Imported at first use.

`namespace.py` is the keys of one prefix as a store of their own; `translate.py` is the pure part of it. `mirror.py`
copies a prefix to another cluster; `follow.py` reads a prefix and all its changes.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import public_names
from etcd_aio.layers.checkpoint import Checkpoint as Checkpoint
from etcd_aio.layers.follow import Follow as Follow
from etcd_aio.layers.follow import MirrorBatch as MirrorBatch
from etcd_aio.layers.follow import follow as follow
from etcd_aio.layers.mirror import Mirror as Mirror
from etcd_aio.layers.mirror import MirrorStatistics as MirrorStatistics
from etcd_aio.layers.namespace import Namespace as Namespace

if not TYPE_CHECKING:  # type checkers take the imports above
    __all__ = public_names(globals())
