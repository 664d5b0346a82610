"""Results of a cache, as frozen values. Pure."""

from etcd_aio.cache.state import CacheState
from etcd_aio.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """Counters of a cache.

    Attributes:
        state: its state.
        keys: how many keys it holds.
        revision: of its content.
        age: seconds; see `Cache.age`.
        followers: of its changes.
        waiting: tasks that wait for a revision.
        events: that were applied.
        loads: how often the range was read: once, and again after a compaction, or if the store was replaced.
        probes: linearizable reads of the store's revision.
        validations: linearizable reads that replaced a mark: see "How fresh is a cached read" in the documentation.
        fallbacks: reads that went to the server, since the cache was not current in time.
        decode_errors: values that could not be decoded.
    """

    state: CacheState
    keys: int
    revision: int
    age: float
    followers: int
    waiting: int
    events: int
    loads: int
    probes: int
    validations: int
    fallbacks: int
    decode_errors: int
