"""watch/fragments.py: for which watches they are requested."""

import pytest

from etcd_aio.types.keys import KeyRange
from etcd_aio.watch.fragments import Fragments
from etcd_aio.watch.state import WatchOptions, WatchState


def watch(fragment: bool | None = None) -> WatchState:
    return WatchState(WatchOptions(KeyRange.of("k"), fragment=fragment), 0, lambda: None)


def test_they_are_requested_for_one_watch_until_the_stream_ends_for_another_reason() -> None:
    fragments, large, other = Fragments(), watch(), watch()
    assert fragments.request_for(large)
    assert (fragments.is_requested_for(large), fragments.is_requested_for(other)) == (True, False)
    assert not fragments.request_for(large), "its messages are too large even so"
    fragments.clear()
    assert not fragments.is_requested_for(large)
    assert fragments.request_for(large)
    fragments.forget(large)
    assert not fragments.is_requested_for(large)


def test_they_are_requested_for_all_once() -> None:
    fragments, any_watch = Fragments(), watch()
    assert fragments.request_for_all([any_watch])
    assert fragments.is_requested_for(any_watch)
    assert not fragments.request_for(any_watch)
    assert not fragments.request_for_all([any_watch])


@pytest.mark.parametrize("fragment", [True, False])
def test_an_explicit_option_is_never_changed(fragment: bool) -> None:
    fragments, explicit = Fragments(), watch(fragment)
    assert not fragments.request_for(explicit)
    assert not fragments.request_for_all([explicit])
    assert fragments.is_requested_for(explicit) == fragment
