"""Values that the API server of Kubernetes stores in etcd, as the JSON of the API."""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.kubernetes.values import StoredObject as StoredObject
    from etcd_aio.kubernetes.values import decode_value as decode_value
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
