"""What a proxy refuses, and its statistics; its faults need sockets."""

import dataclasses

import pytest

from etcd_aio.testing import FaultProxy, FaultProxyStatistics


@pytest.mark.parametrize("target", ["127.0.0.1:2379", "http://127.0.0.1", ""])
def test_a_target_is_a_url(target: str) -> None:
    with pytest.raises(ValueError, match="host and port"):
        FaultProxy(target)


def test_impossible_faults_are_refused() -> None:
    proxy = FaultProxy("http://127.0.0.1:1")
    with pytest.raises(ValueError, match="not negative"):
        proxy.delay(-0.1)
    with pytest.raises(ValueError, match="lets something through"):
        proxy.throttle(0)
    with pytest.raises(ValueError, match="not negative"):
        proxy.cut_after(-1)


def test_before_the_start() -> None:
    proxy = FaultProxy("http://127.0.0.1:1")
    with pytest.raises(RuntimeError, match="not started"):
        _ = proxy.endpoint
    with pytest.raises(RuntimeError, match="not started"):
        proxy.accept()
    assert proxy.statistics() == FaultProxyStatistics(0, 0, 0, 0)
    assert "refusing" in repr(proxy)


def test_statistics_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        FaultProxyStatistics(0, 0, 0, 0).connections_open = 1  # type: ignore[misc]
