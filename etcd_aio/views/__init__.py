"""Views: stores that change the keys or the reads of another store. Imported at first use.

`prefix.py` is the keys that begin with a prefix as a store of their own; `translate.py` is the pure part of it.
`ordered.py` is a store whose reads never go back.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import public_names
from etcd_aio.views.ordered import Ordered as Ordered
from etcd_aio.views.ordered import OrderedStatistics as OrderedStatistics
from etcd_aio.views.prefix import Namespace as Namespace

if not TYPE_CHECKING:  # type checkers take the imports above
    __all__ = public_names(globals())
