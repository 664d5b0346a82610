"""base/blocking.py: objects for blocking code are known as such, and are refused by name."""

import pytest

from etcd_aio.base.blocking import Blocking, check_asyncio
from etcd_aio.portal import Facade


class Client(Blocking):
    pass


def test_every_facade_is_for_blocking_code() -> None:
    assert issubclass(Facade, Blocking)


def test_an_object_for_blocking_code_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^writer is a Client of etcd_aio\.sync, .* use etcd_aio\.Client"):
        check_asyncio(Client(), "writer")


@pytest.mark.parametrize("given", [None, "http://h:1", object()])
def test_others_are_for_the_checks_that_follow(given: object) -> None:
    check_asyncio(given, "client")
