"""base/reprs.py: reprs of objects that are not complete."""

import pytest

from etcd_aio.base.reprs import when_constructed


class Thing:
    def __init__(self, name: str) -> None:
        if not name:
            raise ValueError("no name")
        self.name = name

    @when_constructed
    def __repr__(self) -> str:
        return f"Thing({self.name!r})"


def test_a_repr_is_as_it_was_once_the_object_is_complete() -> None:
    assert repr(Thing("a")) == "Thing('a')"
    assert Thing.__repr__.__name__ == "__repr__"


def test_an_object_that_was_refused_says_so() -> None:
    assert repr(Thing.__new__(Thing)) == "<Thing not constructed>"
    with pytest.raises(ValueError, match="no name") as caught:
        Thing("")
    assert repr(caught.traceback[-1].frame.f_locals["self"]) == "<Thing not constructed>"
