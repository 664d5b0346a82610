"""transport/quiet_streams.py: a quiet stream is opened only where the server allows enough streams."""

import pytest

from etcd_aio.errors import AttemptFailure, Delivery, StatusCode
from etcd_aio.transport.quiet_streams import FEWEST, check_limit


def test_the_server_must_allow_enough_streams() -> None:
    check_limit(FEWEST)
    with pytest.raises(AttemptFailure, match=f"only {FEWEST - 1} streams") as caught:
        check_limit(FEWEST - 1)
    assert (caught.value.code, caught.value.delivery) == (StatusCode.RESOURCE_EXHAUSTED, Delivery.UNSENT)
