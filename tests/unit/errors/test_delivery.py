"""Delivery: which facts alone prove that the server did nothing."""

import pytest

from etcd_aio.errors import Delivery


@pytest.mark.parametrize(
    ("delivery", "is_definite"),
    [
        (Delivery.UNSENT, True),
        (Delivery.UNPROCESSED, True),
        (Delivery.UNKNOWN, False),
        (Delivery.ANSWERED, False),
    ],
)
def test_only_what_was_not_taken_is_definite(delivery: Delivery, is_definite: bool) -> None:
    assert delivery.is_definite is is_definite


def test_there_are_four_facts() -> None:
    assert len(Delivery) == 4


def test_each_has_words_of_its_own() -> None:
    assert len({delivery.words for delivery in Delivery}) == len(Delivery)
