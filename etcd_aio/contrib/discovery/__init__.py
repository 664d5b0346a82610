"""Discovery: clients of HTTP and gRPC that find the servers of a service in etcd.

`httpx.py`, `aiohttp.py` and `grpc.py` connect to the endpoints that `client.resolve()` follows, each for the library
that it is named after; import the module that you need.
"""

from etcd_aio.contrib.discovery.picking import PickPolicy as PickPolicy
