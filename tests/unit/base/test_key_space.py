"""base/key_space.py: which of them are equal, and what they show."""

from etcd_aio import KeySpace
from etcd_aio.base.key_space import key_space_of


def test_a_key_space_tells_its_prefix_and_not_its_client() -> None:
    whole = KeySpace(object())
    assert whole != KeySpace(object())
    assert whole.within(b"a/").within(b"c/") == KeySpace(whole.client, b"a/c/")
    assert repr(whole) == "<KeySpace of the whole store>"
    assert repr(whole.within(b"a/")) == "<KeySpace of the keys that begin with b'a/'>"


def test_what_does_not_tell_has_none() -> None:
    assert key_space_of(object()) is None
    assert key_space_of(None) is None
