"""The blocking classes for those of `etcd_aio.cache`.

Made by `python -m release.facade --write` from `etcd_aio.cache`: do not edit.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.sync.cache.cache import Cache as Cache
    from etcd_aio.sync.cache.changes import CacheBatches as CacheBatches
    from etcd_aio.sync.cache.changes import CacheChanges as CacheChanges
    from etcd_aio.sync.cache.changes import KeySetChanges as KeySetChanges
    from etcd_aio.sync.cache.derived import Derived as Derived
    from etcd_aio.sync.cache.derived import DerivedChanges as DerivedChanges
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
