"""calls/store_calls.py: `client.watch()`: the check of its arguments, and the options they become."""

import gc
from typing import TYPE_CHECKING, Any

import pytest

from etcd_aio import InvalidRequestError, OnCompaction, WatchFilter
from etcd_aio.errors import EmptyKeyError
from etcd_aio.types.keys import KeyRange
from etcd_aio.watch import DEFAULT_MAX_PENDING
from tests.support.watch_service import ScriptedService, entered, store_on

if TYPE_CHECKING:
    from etcd_aio.calls import StoreCalls

# Most of these tests drop what they entered.
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:watch was not closed:ResourceWarning"),
    pytest.mark.virtual_time,
]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, InvalidRequestError),
        ({"key": ""}, EmptyKeyError),
        ({"key": "a", "prefix": "b"}, InvalidRequestError),
        ({"key": "b", "range_end": "a"}, InvalidRequestError),
        ({"key": 7}, TypeError),
        ({"key": "a", "start_revision": -1}, InvalidRequestError),
        ({"key": "a", "start_revision": "1"}, TypeError),
        ({"key": "a", "filters": ["no_puts"]}, InvalidRequestError),
        ({"key": "a", "filters": "no_put"}, TypeError),
        ({"key": "a", "prev_kv": "no"}, TypeError),
        ({"key": "a", "fragment": 1}, TypeError),
        ({"key": "a", "progress_notify": None}, TypeError),
        ({"key": "a", "on_compaction": "ignore"}, InvalidRequestError),
        ({"key": "a", "on_compaction": "resync", "filters": ["no_put"]}, InvalidRequestError),
        ({"key": "a", "max_pending": 0}, InvalidRequestError),
        ({"key": "a", "max_outage": -1.0}, InvalidRequestError),
        ({"key": "a", "timeout": -1.0}, InvalidRequestError),
        ({"key": "a", "stream": None}, TypeError),
        ({"key": "a", "timeout": "1"}, TypeError),
    ],
)
def test_invalid_arguments_are_refused_before_anything_is_sent(
    arguments: dict[str, Any], error: type[Exception]
) -> None:
    service = ScriptedService()
    with pytest.raises(error):
        store_on(lambda stream: service).watch(**arguments)
    assert service.said == []


async def test_the_arguments_become_the_options_of_the_watch() -> None:
    service, _ = await entered(
        start_revision=7,
        prev_kv=True,
        filters=["no_delete", WatchFilter.NO_DELETE],
        on_compaction=OnCompaction.RESYNC,
        max_outage=3,
    )
    options = service.watch.options
    assert (options.keys, options.prev_kv, options.fragment, options.resync) == (KeyRange.of("k"), True, None, True)
    assert (options.filters, options.max_outage) == ((WatchFilter.NO_DELETE,), 3)
    assert options.max_pending == DEFAULT_MAX_PENDING
    assert service.watch.next_revision == 7
    assert service.watch.known is None  # it hears of no delete, so it need not know what is gone


def test_watches_with_the_same_name_share_a_stream_for_as_long_as_one_is_held() -> None:
    made: list[str] = []

    def watches_on(stream: str) -> ScriptedService:
        made.append(stream)
        return ScriptedService()

    calls: StoreCalls = store_on(watches_on)
    common = [calls.watch("a"), calls.watch("b", stream="")]
    held = [calls.watch("c", stream="slow"), calls.watch("d", stream="slow"), calls.watch("e", stream="mark")]
    assert made == ["", "slow", "mark"]
    del held[:2]
    gc.collect()
    held.append(calls.watch("f", stream="slow"))
    assert made == ["", "slow", "mark", "slow"], "names that are not used any more take no memory"
    assert len(common) == len(held) == 2
