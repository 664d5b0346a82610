"""Reads from memory: the keys of a range, kept like the store. Imported at first use.

`tree.py` is the sorted store and `rows.py` what it holds, `state.py` says what moves its content and revision on,
`steps.py` changes it by events, `base.py` loads it, and `conflation.py` sums up changes: these are pure.
`replicator.py` loads the range, watches it, and loads it again after a compaction, `probe.py` shares one read among
many callers, `waiting.py` and `catch_up.py` bring the content to a revision, `changes.py` has the followers,
`decoder.py` the decoded values. `cache.py` is what users see, and `derived.py` makes values of a cache.
Everything stands on the public client.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.cache.cache import DEFAULT_MAX_OUTAGE as DEFAULT_MAX_OUTAGE
    from etcd_aio.cache.cache import DEFAULT_MAX_PENDING as DEFAULT_MAX_PENDING
    from etcd_aio.cache.cache import Cache as Cache
    from etcd_aio.cache.changes import CacheBatches as CacheBatches
    from etcd_aio.cache.changes import CacheChanges as CacheChanges
    from etcd_aio.cache.changes import KeySetChanges as KeySetChanges
    from etcd_aio.cache.derived import Derived as Derived
    from etcd_aio.cache.derived import DerivedChanges as DerivedChanges
    from etcd_aio.cache.results import CacheStatistics as CacheStatistics
    from etcd_aio.cache.state import CacheState as CacheState
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
