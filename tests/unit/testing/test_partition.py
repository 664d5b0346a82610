"""testing/partition.py: whose a connection is, read from the kernel's table; cutting off needs a real cluster."""

import sys

import pytest

from etcd_aio.testing.partition import PeerNetwork, _inodes_in

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2AF8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1 0 100 0 0 10 0
   1: 0100007F:9C40 0100007F:2AF8 01 00000000:00000000 00:00000000 00000000     0        0 102 1 0 20 4 30 10 -1
   2: 0100007F:2AF8 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 103 1 0 20 4 30 10 -1
   3: 0100007F:9C40 0100007F:2AF9 01 00000000:00000000 00:00000000 00000000     0        0 104 1 0 20 4 30 10 -1
"""


def test_the_callers_end_of_a_connection_is_found() -> None:
    assert _inodes_in(TABLE, 0x9C40, 0x2AF8) == {"102"}
    assert _inodes_in(TABLE, 0x2AF8, 0x9C40) == {"103"}
    assert _inodes_in(TABLE, 0x2AF8, 0x0001) == set()
    assert _inodes_in("", 1, 2) == set()


def test_elsewhere_than_on_linux_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(RuntimeError, match="Linux"):
        PeerNetwork({}, dict, host="127.0.0.1")
