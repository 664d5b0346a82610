"""types/enums.py: members, their words, and everything else refused."""

from enum import Enum

import pytest

from etcd_aio.arguments import parse_word
from etcd_aio.errors import InvalidRequestError
from etcd_aio.types import Alarm, Permission
from etcd_aio.types.enums import DowngradeAction, SortBy, SortOrder


@pytest.mark.parametrize("member", [*SortBy, *SortOrder, *Alarm, *DowngradeAction, *Permission])
def test_a_member_and_its_lower_case_word_are_the_same(member: Enum) -> None:
    assert member.value == member.name.lower()
    assert parse_word(type(member), member, "x") is member
    assert parse_word(type(member), member.value, "x") is member


@pytest.mark.parametrize("given", ["ASCEND", "asc", "", 1, None, ["ascend"], SortBy.KEY])
def test_anything_else_is_refused_with_the_words(given: object) -> None:
    with pytest.raises(InvalidRequestError, match="sort_order must be one of 'ascend', 'descend' or a SortOrder, got"):
        parse_word(SortOrder, given, "sort_order")
