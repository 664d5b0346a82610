"""testing/server.py: what a server says before it was started; the rest needs a real one."""

import pytest

from etcd_aio.testing import EtcdServer
from etcd_aio.testing.options import Membership


def test_before_the_start_there_is_nothing_to_tell() -> None:
    server = EtcdServer("m7")
    assert repr(server) == "<EtcdServer m7: not started>"
    assert not server.is_running
    assert not server.is_paused
    for read in (lambda: server.endpoint, lambda: server.pid, lambda: server.version, lambda: server.data_dir):
        with pytest.raises(RuntimeError, match="not started"):
            read()
    with pytest.raises(RuntimeError, match="does not run"):
        server.pause()


@pytest.mark.anyio
async def test_a_member_of_two_is_not_wiped() -> None:
    server = EtcdServer("m0", membership=Membership({"m0": "http://a:1", "m1": "http://b:1"}))
    with pytest.raises(ValueError, match=r"EtcdCluster\.replace"):
        await server.restart(wipe=True)
