"""The API of etcd3gw 2.7 on etcd_aio: results are the JSON of etcd's gateway, though the calls go over gRPC.

Numbers of 64 bits are text, and fields with their default are absent. Different on purpose: no call waits without a
limit (30 s where the client has no `timeout`); a watch survives a lost connection and another leader, and its iterator
raises an error after 10 s without a server, where that of etcd3gw waits for ever; a lock leaves no lease behind when it
is not acquired. The client may be shared by threads, and works in a forked process.
"""

from typing import TYPE_CHECKING, Final

from etcd_aio import compat
from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.compat.etcd3gw import exceptions as exceptions
    from etcd_aio.compat.etcd3gw import lease as lease
    from etcd_aio.compat.etcd3gw import lock as lock
    from etcd_aio.compat.etcd3gw import types as types
    from etcd_aio.compat.etcd3gw import utils as utils
    from etcd_aio.compat.etcd3gw import watch as watch
    from etcd_aio.compat.etcd3gw.client import Etcd3Client as Etcd3Client
    from etcd_aio.compat.etcd3gw.client import client as client
    from etcd_aio.compat.etcd3gw.lease import Lease as Lease
    from etcd_aio.compat.etcd3gw.lock import Lock as Lock
else:
    __getattr__, __dir__, __all__ = late_names(__name__)

__version__: Final = "2.7.0"
"""The release of etcd3gw that this stands for."""


def install() -> None:
    """Let `import etcd3gw` find this package: `etcd_aio.compat.install("etcd3gw")`."""
    compat.install("etcd3gw")
