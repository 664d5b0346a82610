"""tooz: `get_coordinator("etcd3+aio://m1:2379,m2:2379,m3:2379", member_id)`, the driver on this client."""

from etcd_aio.contrib.missing import missing

try:
    import tooz  # noqa: F401 - fails here, with the name of the extra
except ModuleNotFoundError as _error:
    raise missing(__name__, "tooz", _error, "tooz") from _error

from etcd_aio.contrib.tooz.driver import EtcdDriver as EtcdDriver
from etcd_aio.contrib.tooz.lock import EtcdLock as EtcdLock
