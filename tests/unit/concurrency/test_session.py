"""Session: what it makes has its lease, and gets every argument. The rest is in the integration tests."""

import inspect

import pytest

from etcd_aio import Client
from etcd_aio.concurrency import session as module


class Recorder:
    """Stands for a class; it has the arguments that it was called with."""

    def __init__(self, *args: object, **options: object) -> None:
        self.args = args
        self.options = options


@pytest.mark.parametrize(
    ("method", "made"), [("lock", "Lock"), ("rwlock", "RWLock"), ("semaphore", "Semaphore"), ("election", "Election")]
)
def test_every_argument_is_passed_on(method: str, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, made, Recorder)
    client = Client("127.0.0.1:1")
    session = client.session(ttl=17)
    make = getattr(session, method)
    options: dict[str, object] = {name: object() for name in inspect.signature(make).parameters if name != "name"}
    result = make("a", **options)
    assert result.args == (client, session, "a")
    assert result.options == {**options, "ttl": 17}
