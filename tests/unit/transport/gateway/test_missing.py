"""transport/gateway/engine.py: without the package that the gateway needs, the engine says what to install."""

import sys
from typing import Literal

import pytest

from etcd_aio.errors import ConfigError
from etcd_aio.transport import TransportOptions, create_engine


@pytest.mark.parametrize("engine", ["gateway", "auto"])
def test_a_missing_package_is_named(engine: Literal["gateway", "auto"], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "websockets.client", None)
    with pytest.raises(ConfigError, match=r"pip install 'etcd_aio\[gateway\]'"):
        create_engine(engine, TransportOptions())
