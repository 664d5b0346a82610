"""fake/fake_etcd.py, fake/faults.py: arguments that cannot be right are refused: a fault that never matches would let a
test pass for nothing.
"""

from typing import Any

import pytest

from etcd_aio import ConfigError
from etcd_aio.fake import FakeEtcd


@pytest.mark.parametrize(
    ("method", "arguments", "text"),
    [
        ("KV/Putt", {"status": "UNAVAILABLE"}, "no method 'KV/Putt'.*did you mean 'KV/Put'"),
        ("Put", {"status": "UNAVAILABLE"}, "did you mean 'KV/Put'"),
        ("/etcdserverpb.KV/Put", {"status": "UNAVAILABLE"}, "did you mean 'KV/Put'"),
        ("", {"status": "UNAVAILABLE"}, "no method ''"),
        ("KV/Put", {"after_apply": True}, "after_apply.*status"),
        ("KV/Put", {"status": "OK"}, "OK"),
        ("KV/Put", {"delay": -1.0}, "delay"),
        ("KV/Put", {"reset": True, "times": 0}, "times"),
        ("KV/Put", {"reset": True, "times": -1}, "times"),
        ("Watch/Watch", {"cut_after": -1}, "cut_after"),
        ("KV/Put", {"cut_after": 3}, "cut_after.*streams"),
        ("Watch/Watch", {"delay": 3.0}, "delay.*unary"),
        ("Watch/Watch", {"goaway": True}, "goaway.*unary"),
        ("Lease/LeaseKeepAlive", {"reset": True, "after_apply": True}, "after_apply.*unary"),
        ("KV/Put", {"reset": True, "message": "text"}, "message"),
    ],
)
def test_faults_that_would_do_nothing(method: str, arguments: dict[str, Any], text: str) -> None:
    fake = FakeEtcd()
    with pytest.raises(ConfigError, match=text), fake.fault(method, **arguments):
        pass
    assert not fake._faults.rules


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"members": 0}, "members"),
        ({"members": -1}, "members"),
        ({"members": 1.5}, "members"),
        ({"members": True}, "members"),
        ({"latency": -1.0}, "latency"),
        ({"latency": float("nan")}, "latency"),
        ({"version": 3.6}, "version"),
        ({"version": "3"}, "can be 3.4"),
    ],
)
def test_fakes_that_cannot_be(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        FakeEtcd(**arguments)


@pytest.mark.parametrize("content", [{"a": "1", "b": 1}, {"a": "1", 2: "b"}, {"a": "1", "b": None}, {"a": "1", "": ""}])
def test_content_that_cannot_be_loaded_changes_nothing(content: dict[Any, Any]) -> None:
    fake = FakeEtcd()
    with pytest.raises((TypeError, ConfigError)):
        fake.load(content)
    assert fake.revision == 1
    assert fake.keys() == {}


def test_seconds_do_not_run_back() -> None:
    with pytest.raises(ConfigError, match="seconds"):
        FakeEtcd().advance(-1.0).send(None)


def test_members_of_another_fake_are_refused() -> None:
    fake, other = FakeEtcd(), FakeEtcd()
    with pytest.raises(ConfigError, match="another fake"), fake.fault("KV/Put", reset=True, member=other.members[0]):
        pass
    with pytest.raises(ConfigError, match="another fake"):
        fake.elect(other.members[0])


@pytest.mark.anyio
async def test_a_fake_that_was_closed_is_not_entered_again() -> None:
    async with FakeEtcd() as fake:
        fake.load({"a": "1"})
    assert fake.keys() == {b"a": b"1"}
    with pytest.raises(ConfigError, match="was closed"):
        async with fake:
            pass
