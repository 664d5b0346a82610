"""transport/quiet_streams.py: a quiet stream needs a connection with room for it."""

import pytest

from etcd_aio.errors import AttemptFailure, Delivery, StatusCode
from etcd_aio.transport.quiet_streams import FEWEST, check_room


def test_there_must_be_room() -> None:
    check_room(FEWEST)
    with pytest.raises(AttemptFailure, match=f"only {FEWEST - 1} streams") as caught:
        check_room(FEWEST - 1)
    assert (caught.value.code, caught.value.delivery) == (StatusCode.RESOURCE_EXHAUSTED, Delivery.UNSENT)
