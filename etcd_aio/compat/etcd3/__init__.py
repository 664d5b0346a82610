"""python-etcd3's API on `etcd_aio.sync`, without grpcio and protobuf.

    import etcd_aio.compat.etcd3
    etcd_aio.compat.etcd3.install()  # from now on `import etcd3` finds this package

    import etcd3
    client = etcd3.client(host="m1")
    client.put("greeting", "hello")

It has the API of python-etcd3 0.12 with `MultiEndpointEtcd3Client` of later versions. Responses are plain frozen
objects with the names of etcd's messages. Different on purpose: no call waits without a limit; a watch survives the
loss of its server; a lock leaves no lease behind when it is not acquired; options of `get_range` that 0.12 ignores are
used.
"""

from etcd_aio import compat
from etcd_aio.compat.etcd3 import etcdrpc as etcdrpc
from etcd_aio.compat.etcd3 import events as events
from etcd_aio.compat.etcd3 import exceptions as exceptions
from etcd_aio.compat.etcd3 import leases as leases
from etcd_aio.compat.etcd3 import locks as locks
from etcd_aio.compat.etcd3 import members as members
from etcd_aio.compat.etcd3 import transactions as transactions
from etcd_aio.compat.etcd3 import utils as utils
from etcd_aio.compat.etcd3 import watch as watch
from etcd_aio.compat.etcd3.client import Endpoint as Endpoint
from etcd_aio.compat.etcd3.client import Etcd3Client as Etcd3Client
from etcd_aio.compat.etcd3.client import MultiEndpointEtcd3Client as MultiEndpointEtcd3Client
from etcd_aio.compat.etcd3.client import Transactions as Transactions
from etcd_aio.compat.etcd3.client import client as client
from etcd_aio.compat.etcd3.exceptions import Etcd3Exception as Etcd3Exception
from etcd_aio.compat.etcd3.leases import Lease as Lease
from etcd_aio.compat.etcd3.locks import Lock as Lock
from etcd_aio.compat.etcd3.members import Member as Member

__version__ = "0.12.0"  # the one whose API this is

__all__ = [
    "Endpoint",
    "Etcd3Client",
    "Etcd3Exception",
    "Lease",
    "Lock",
    "Member",
    "MultiEndpointEtcd3Client",
    "Transactions",
    "client",
    "etcdrpc",
]


def install() -> None:
    """Let `import etcd3` find this package: `etcd_aio.compat.install("etcd3")`."""
    compat.install("etcd3")
