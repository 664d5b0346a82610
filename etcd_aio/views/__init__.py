"""Views: backends that change the keys or the reads on their way to another one. Imported at first use.

`prefix.py` has namespaces; `translate.py` is the pure part of it. `ordered.py` has reads that never go back.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.views.ordered import OrderedStatistics as OrderedStatistics
    from etcd_aio.views.ordered import OrderedView as OrderedView
    from etcd_aio.views.prefix import PrefixView as PrefixView
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
