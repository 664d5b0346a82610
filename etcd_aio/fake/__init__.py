"""A fake etcd in memory, for unit tests of services.

from etcd_aio.fake import FakeEtcd

async with FakeEtcd() as fake, fake.client() as client:
    await client.put("a", "1")
    assert fake.keys() == {b"a": b"1"}
"""

from etcd_aio.fake.cluster import FakeBackup as FakeBackup
from etcd_aio.fake.fake_etcd import FakeEtcd as FakeEtcd
from etcd_aio.fake.faults import Fault as Fault
from etcd_aio.fake.inspection import FakeCall as FakeCall
from etcd_aio.fake.inspection import FakeLease as FakeLease
from etcd_aio.fake.inspection import FakeWatcher as FakeWatcher
from etcd_aio.fake.member import FakeMember as FakeMember
from etcd_aio.fake.network import Network as Network
