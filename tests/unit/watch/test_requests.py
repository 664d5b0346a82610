"""watch/requests.py: the messages of a watch stream."""

from etcd_aio import codec, pb
from etcd_aio.types.enums import WatchFilter
from etcd_aio.types.keys import KeyRange
from etcd_aio.watch import requests
from etcd_aio.watch.state import WatchOptions


def test_the_messages_of_a_watch_stream() -> None:
    options = WatchOptions(
        KeyRange.of(prefix="k"),
        prev_kv=True,
        progress_notify=True,
        filters=(WatchFilter.NO_DELETE, WatchFilter.NO_PUT),
    )
    types = pb.WatchCreateRequestFilterType
    assert requests.watch_request(options, 9, 7, False) == pb.WatchRequest(
        create_request=pb.WatchCreateRequest(
            key=b"k",
            range_end=b"l",
            start_revision=7,
            progress_notify=True,
            filters=[types.NODELETE, types.NOPUT],
            prev_kv=True,
            watch_id=9,
        )
    )
    for needed in (False, True):
        plain = requests.watch_request(WatchOptions(KeyRange.of("k")), 9, 0, needed)
        assert plain == pb.WatchRequest(create_request=pb.WatchCreateRequest(key=b"k", watch_id=9, fragment=needed))
    assert codec.encode(requests.watch_cancel_request(0)) == b"\x12\x00"
    assert codec.encode(requests.watch_progress_request()) == b"\x1a\x00"
