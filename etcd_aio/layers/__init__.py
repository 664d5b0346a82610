"""Layers: stores that change the keys or the reads of a client; copies of keys; services. Imported at first use.

`namespace.py` is the keys of one prefix as a store of their own; `translate.py` is the pure part of it. `ordering.py`
is a store whose reads never go back. `kubernetes.py` has the optimistic writes of Kubernetes. `mirror.py` copies a
prefix to another cluster; `follow.py` reads a prefix and all its changes. `kept_entry.py` keeps a key in etcd for
as long as its process runs; `registration.py` is that for a service, in the format of `endpoint_json.py`;
`endpoints.py` follows the entries of a service, and `naming.py` changes several.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import public_names
from etcd_aio.layers import naming as naming
from etcd_aio.layers.checkpoint import Checkpoint as Checkpoint
from etcd_aio.layers.endpoint_json import JSONValue as JSONValue
from etcd_aio.layers.endpoint_json import ServiceEndpoint as ServiceEndpoint
from etcd_aio.layers.endpoints import Choice as Choice
from etcd_aio.layers.endpoints import EndpointChanges as EndpointChanges
from etcd_aio.layers.endpoints import Endpoints as Endpoints
from etcd_aio.layers.endpoints import PickPolicy as PickPolicy
from etcd_aio.layers.follow import Follow as Follow
from etcd_aio.layers.follow import MirrorBatch as MirrorBatch
from etcd_aio.layers.follow import follow as follow
from etcd_aio.layers.kept_entry import KeptEntry as KeptEntry
from etcd_aio.layers.kept_entry import OnConflict as OnConflict
from etcd_aio.layers.kubernetes import Found as Found
from etcd_aio.layers.kubernetes import Kubernetes as Kubernetes
from etcd_aio.layers.kubernetes import ListPage as ListPage
from etcd_aio.layers.kubernetes import OptimisticResult as OptimisticResult
from etcd_aio.layers.mirror import Mirror as Mirror
from etcd_aio.layers.mirror import MirrorStatistics as MirrorStatistics
from etcd_aio.layers.namespace import Namespace as Namespace
from etcd_aio.layers.naming import NewEndpoint as NewEndpoint
from etcd_aio.layers.ordering import Ordered as Ordered
from etcd_aio.layers.ordering import OrderedStatistics as OrderedStatistics
from etcd_aio.layers.registration import Registration as Registration

if not TYPE_CHECKING:  # type checkers take the imports above
    __all__ = [*public_names(globals()), "naming"]
