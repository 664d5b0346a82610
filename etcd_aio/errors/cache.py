"""Errors of caches: reads from memory."""

from etcd_aio.errors.base import EtcdError


class CacheError(EtcdError):
    """A cache cannot be read: it was left, or has ended by an error, which is the `__cause__`."""

    default_message = "the cache has ended"


class CacheTimeoutError(CacheError, TimeoutError):
    """A cache was not as new as it had to be within `timeout`.

    The `__cause__` is the last error on the way, if a call had failed; otherwise the changes did not come in time.
    """

    default_message = "the cache was not current in time"
    retryable = True


class CacheRangeError(CacheError, ValueError):
    """A key or a range is outside of what a cache holds, so that it cannot tell whether there is such a key."""

    default_message = "the keys are outside of the range of the cache"
