"""Scan against a small model of a store that changes, answers too large, fails and is cancelled meanwhile."""

import asyncio
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from etcd_aio.api.keys import KeyRange
from etcd_aio.api.operations import RangeOp
from etcd_aio.api.scan import Scan
from etcd_aio.errors import EtcdError, ReplyTooLargeError, StatusCode
from etcd_aio.options import UNSET, RetryMode, Timeout
from etcd_aio.results import Header, KeyValue, RangeResult

KEYS = st.binary(min_size=1, max_size=3)


class WeatherError(Exception):
    """What a step may fail with before the next one is taken."""


class ChangingStore:
    """A store whose every read is preceded by one change, and may go wrong as `script` says."""

    def __init__(self, keys: set[bytes], changes: list[bytes], script: Iterator[str], fits: int) -> None:
        self.history = [frozenset(keys)]
        self.changes = changes
        self.script = script
        self.fits = fits

    async def read_page(self, operation: RangeOp, timeout: Timeout, retry: RetryMode | None) -> RangeResult:
        del timeout, retry
        if self.changes:
            key = self.changes.pop()
            self.history.append(self.history[-1] ^ {key})
        match next(self.script, "fine"):
            case "cancelled":
                raise asyncio.CancelledError
            case "broken":
                raise WeatherError
            case "too large":
                raise EtcdError("too large", code=StatusCode.RESOURCE_EXHAUSTED)
            case _:
                pass
        revision = operation.revision or len(self.history)
        inside = sorted(key for key in self.history[revision - 1] if key in operation.keys)
        found = inside[: operation.limit]
        if len(found) > self.fits:
            raise ReplyTooLargeError("too large")
        kvs = tuple(KeyValue(key) for key in found)
        return RangeResult(Header(revision=len(self.history)), kvs, more=len(inside) > len(found), count=len(inside))


@settings(deadline=None)
@given(
    st.sets(KEYS, max_size=20),
    st.lists(KEYS, max_size=20),
    st.lists(st.sampled_from(["fine", "broken", "cancelled", "too large"]), max_size=20),
    st.integers(1, 8),
    st.integers(1, 20),
    st.sampled_from([KeyRange.of(all_keys=True), KeyRange.of(prefix=b"a"), KeyRange.of("a", range_end=b"\xf0")]),
)
def test_a_scan_is_one_revision_of_the_store_whatever_happens(
    keys: set[bytes], changes: list[bytes], script: list[str], fits: int, page_size: int, interval: KeyRange
) -> None:
    async def scan_all() -> None:
        store = ChangingStore(keys, changes, iter(script), fits)
        scan = Scan(store.read_page, RangeOp(interval), page_size=page_size, timeout=UNSET, retry=None)
        seen: list[bytes] = []
        while True:
            try:
                seen.append((await anext(scan)).key)
            except StopAsyncIteration:
                break
            except (WeatherError, asyncio.CancelledError):
                continue
            except EtcdError:  # even a single key was too large, for now
                continue
        assert seen == sorted(key for key in store.history[scan.revision - 1] if key in interval)

    asyncio.run(scan_all())
