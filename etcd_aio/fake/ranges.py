"""Ranges: filters, sorting and the limit of a range, as etcd applies them. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from operator import attrgetter
from typing import Any, Final, Protocol

from etcd_aio import pb
from etcd_aio.fake.refusals import Reason, Refusal
from etcd_aio.fake.releases import Release

_Order: Final = pb.RangeRequestSortOrder
_Target: Final = pb.RangeRequestSortTarget
_SORT_KEYS: Final[dict[int, Callable[[pb.KeyValue], Any]]] = {
    _Target.KEY: attrgetter("key"),
    _Target.VERSION: attrgetter("version"),
    _Target.CREATE: attrgetter("create_revision"),
    _Target.MOD: attrgetter("mod_revision"),
    _Target.VALUE: attrgetter("value"),
}
_FIRST_CHUNK: Final = 10  # pairs of the first reply of a stream


class Readable(Protocol):
    """The store, or a transaction under way."""

    @property
    def revision(self) -> int:
        """The current revision."""
        ...

    def read(self, key: bytes, end: bytes, revision: int = 0) -> list[pb.KeyValue]:
        """The keys of an interval as they were at a revision."""
        ...


def check_range(request: pb.RangeRequest, release: Release) -> None:
    """Check what can be checked without the store."""
    if not request.key:
        raise Refusal(Reason.EMPTY_KEY)
    if (request.sort_order not in _ORDERS or request.sort_target not in _SORT_KEYS) and release.checks_sort:
        raise Refusal(Reason.INVALID_SORT_OPTION)


_ORDERS: Final = frozenset({_Order.NONE, _Order.ASCEND, _Order.DESCEND})


def check_stream(request: pb.RangeRequest) -> None:
    """Check that a stream can answer a range."""
    if not _is_default_order(request):
        raise Refusal(Reason.STREAM_WITH_SORT)
    if _has_revision_filters(request):
        raise Refusal(Reason.STREAM_WITH_FILTER)


def answer_range(store: Readable, request: pb.RangeRequest, release: Release) -> pb.RangeResponse:
    """Answer a range that was checked; the header has the revision only.

    Raises:
        Refusal: its revision cannot be read.
    """
    found = store.read(request.key, request.range_end, request.revision)
    reply = pb.RangeResponse(header=pb.ResponseHeader(revision=store.revision), count=len(found))
    if request.count_only:
        return reply
    if _is_default_order(request) and not _has_revision_filters(request) and request.limit > 0:
        del found[request.limit + 1 :]  # before they are sorted: without an order, this matters
    found = _sorted(_filtered(found, request), request)
    if 0 < request.limit < len(found):
        del found[request.limit :]
        reply.more = True
    reply.kvs = [_without_value(one, request, release) for one in found] if request.keys_only else found
    return reply


def stream_range(
    store: Readable, request: pb.RangeRequest, release: Release, size_of: Callable[[pb.RangeResponse], int], target: int
) -> Iterator[pb.RangeResponse]:
    """Answer a range that was checked in chunks of the size `target`, all of one revision. The last one has a header.

    Raises:
        Refusal: its revision cannot be read.
    """
    if request.count_only:
        yield answer_range(store, request, release)
        return
    part = replace(request, limit=min(_FIRST_CHUNK, request.limit or _FIRST_CHUNK))
    sent, left = 0, request.limit or inf
    while True:
        whole = answer_range(store, part, release)
        sent, left = sent + len(whole.kvs), left - len(whole.kvs)
        part.key = whole.kvs[-1].key + b"\x00" if whole.more else b""
        if not (whole.more and left):
            break
        yield pb.RangeResponse(kvs=whole.kvs)
        size = size_of(whole)
        limit = part.limit * 2 if size < target // 2 else max(part.limit // 2, 1) if size > target * 2 else part.limit
        part.limit = int(min(limit, left))
    count = sent
    if whole.more:
        count += len(store.read(part.key, part.range_end, part.revision))
    yield pb.RangeResponse(header=whole.header, kvs=whole.kvs, more=whole.more, count=count)


def _is_default_order(request: pb.RangeRequest) -> bool:
    return request.sort_order == _Order.NONE or (
        request.sort_target == _Target.KEY and request.sort_order == _Order.ASCEND
    )


def _has_revision_filters(request: pb.RangeRequest) -> bool:
    return bool(
        request.min_mod_revision
        or request.max_mod_revision
        or request.min_create_revision
        or request.max_create_revision
    )


def _filtered(found: list[pb.KeyValue], request: pb.RangeRequest) -> list[pb.KeyValue]:
    if not _has_revision_filters(request):
        return found
    most_mod = request.max_mod_revision or float("inf")
    most_create = request.max_create_revision or float("inf")
    least_mod = request.min_mod_revision or float("-inf")
    least_create = request.min_create_revision or float("-inf")
    return [
        one
        for one in found
        if least_mod <= one.mod_revision <= most_mod and least_create <= one.create_revision <= most_create
    ]


def _sorted(found: list[pb.KeyValue], request: pb.RangeRequest) -> list[pb.KeyValue]:
    """Sort as asked. Without an order, other targets than the key are sorted in ascending order.

    etcd's sort keeps the order of equal items up to twelve; for more, their order is arbitrary.
    """
    if request.sort_order == _Order.NONE and request.sort_target == _Target.KEY:
        return found
    key = _SORT_KEYS.get(request.sort_target)
    if key is None:
        return found
    return sorted(found, key=key, reverse=request.sort_order == _Order.DESCEND)


def _without_value(one: pb.KeyValue, request: pb.RangeRequest, release: Release) -> pb.KeyValue:
    has_lease = not release.keys_only_drops_lease or request.sort_target == _Target.VALUE
    return pb.KeyValue(
        key=one.key,
        create_revision=one.create_revision,
        mod_revision=one.mod_revision,
        version=one.version,
        lease=one.lease if has_lease else 0,
    )
