"""The blocking classes for those of `etcd_aio.once`.

Made by `python -m release.facade --write` from `etcd_aio.once`: do not edit.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.sync.once.once import ExactlyOnce as ExactlyOnce
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
