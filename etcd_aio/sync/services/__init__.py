"""The blocking classes for those of `etcd_aio.services`.

Made by `python -m release.facade --write` from `etcd_aio.services`: do not edit.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.sync.services import naming as naming
    from etcd_aio.sync.services.endpoints import Endpoints as Endpoints
    from etcd_aio.sync.services.registration import Registration as Registration
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
