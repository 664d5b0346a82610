"""Services: which addresses a service has, as processes register them. Imported at first use.

`kept_entry.py` keeps a key in etcd for as long as its process runs; `registration.py` is that for a service, in the
format of `endpoint_json.py`. `endpoints.py` follows the entries of a service, of which `last_list.py` keeps the last
ones for a while, and `naming.py` changes several.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.services import naming as naming
    from etcd_aio.services.endpoint_json import JSONValue as JSONValue
    from etcd_aio.services.endpoint_json import ServiceEndpoint as ServiceEndpoint
    from etcd_aio.services.endpoints import Choice as Choice
    from etcd_aio.services.endpoints import Endpoints as Endpoints
    from etcd_aio.services.endpoints import PickPolicy as PickPolicy
    from etcd_aio.services.kept_entry import KeptEntry as KeptEntry
    from etcd_aio.services.kept_entry import OnConflict as OnConflict
    from etcd_aio.services.last_list import ServiceChange as ServiceChange
    from etcd_aio.services.naming import NewEndpoint as NewEndpoint
    from etcd_aio.services.registration import Registration as Registration
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
