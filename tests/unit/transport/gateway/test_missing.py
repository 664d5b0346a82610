"""Without the package that the gateway needs, the client says what to install."""

import sys

import pytest

from etcd_aio import Client
from etcd_aio.errors import ConfigError


@pytest.mark.parametrize("engine", ["gateway", "auto"])
def test_a_missing_package_is_named(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "websockets.client", None)
    with pytest.raises(ConfigError, match=r"pip install 'etcd_aio\[gateway\]'"):
        Client("m1", engine=engine)  # type: ignore[arg-type] # one of the names
