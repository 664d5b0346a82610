"""arguments/blocks.py: the margin of a block, and whether a loss cancels it."""

import pytest

from etcd_aio.arguments import cancels_block, checked_margin
from etcd_aio.errors import InvalidRequestError


def test_the_margin_is_a_tenth_of_the_ttl_and_at_most_a_second() -> None:
    assert checked_margin(None, 5) == 0.5
    assert checked_margin(None, 60) == 1.0
    assert checked_margin(3, 10) == 3.0
    assert checked_margin(0, 10) == 0.0
    for wrong in (-0.1, 3.4, float("nan")):
        with pytest.raises(InvalidRequestError):
            checked_margin(wrong, 10)
    with pytest.raises(TypeError):
        checked_margin(True, 10)


def test_a_loss_cancels_the_block_or_is_a_signal() -> None:
    assert (cancels_block("cancel"), cancels_block("signal")) == (True, False)
    with pytest.raises(InvalidRequestError, match="on_lost must be one of 'cancel', 'signal'; got 'explode'"):
        cancels_block("explode")
