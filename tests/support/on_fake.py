"""`--on-fake`: the integration tests that share a server run on a fake instead, a new one for each test.

Clients of the tests connect to the fake, and to real servers if a test starts some besides.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from etcd_aio import Client
from etcd_aio.fake import FakeEtcd
from etcd_aio.testing import find_etcd
from etcd_aio.transport import Connection, ConnectionOwner, Engine, Target, TransportOptions, create_engine

HOST: Final = "fake1"


class FakeServer:
    """Stands for the shared server.

    Attributes:
        fake: the fake of the test that runs.
    """

    endpoint: Final = f"http://{HOST}:2379"
    endpoints: Final = (endpoint,)

    def __init__(self) -> None:
        self.version = find_etcd().version
        self.fake = FakeEtcd(self.version)

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """A new fake for a test, to which clients connect by default."""
        defaults = Client.__init__.__kwdefaults__
        assert defaults is not None
        self.fake = FakeEtcd(self.version)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(defaults, "engine", lambda options: _EitherEngine(self.fake, options))
            yield


class _EitherEngine:
    """Connects to the fake by its name, and to anything else by a socket."""

    def __init__(self, fake: FakeEtcd, options: TransportOptions) -> None:
        self._fake = fake.engine(options)
        self._native = create_engine("native", options)

    def _of(self, target: Target) -> Engine:
        return self._fake if target.host == HOST else self._native

    async def connect(self, target: Target, owner: ConnectionOwner) -> Connection:
        return await self._of(target).connect(target, owner)

    async def http_get(self, target: Target, path: str) -> bytes:
        return await self._of(target).http_get(target, path)
