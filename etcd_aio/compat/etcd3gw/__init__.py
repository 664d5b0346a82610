"""The API of etcd3gw 2.7 on etcd_aio: results are the JSON of etcd's gateway, though the calls go over gRPC.

Numbers of 64 bits are text, and fields with their default are absent. A watch outlasts what etcd3gw's does not: a lost
connection, a leader that changes. The client may be shared by threads, and works in a forked process.
"""

from typing import TYPE_CHECKING, Final

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.compat.etcd3gw import types as types
    from etcd_aio.compat.etcd3gw import utils as utils
    from etcd_aio.compat.etcd3gw.client import Etcd3Client as Etcd3Client
    from etcd_aio.compat.etcd3gw.client import client as client
    from etcd_aio.compat.etcd3gw.lease import Lease as Lease
    from etcd_aio.compat.etcd3gw.lock import Lock as Lock
else:
    __getattr__, __dir__, __all__ = late_names(__name__)

__version__: Final = "2.7.0"
"""The release of etcd3gw that this stands for."""
