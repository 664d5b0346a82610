"""Discovery: clients of HTTP and gRPC that find the servers of a service in etcd.

`directory.py` follows the endpoints of a service. `httpx.py`, `aiohttp.py` and `grpc.py` connect to them, each for the
library that it is named after; import the module that you need.
"""

from etcd_aio.contrib.discovery.directory import Directory as Directory
from etcd_aio.contrib.discovery.directory import DirectoryChanges as DirectoryChanges
from etcd_aio.contrib.discovery.directory import ServiceStore as ServiceStore
from etcd_aio.contrib.discovery.last_list import DirectoryChange as DirectoryChange
from etcd_aio.contrib.discovery.picking import PickPolicy as PickPolicy
