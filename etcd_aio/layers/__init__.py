"""Layers: stores that wrap a client, and change its keys or its reads. Imported at first use.

`namespace.py` is the keys of one prefix as a store of their own; `translate.py` is the pure part of it.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import public_names
from etcd_aio.layers.namespace import Namespace as Namespace

if not TYPE_CHECKING:  # type checkers take the imports above
    __all__ = public_names(globals())
