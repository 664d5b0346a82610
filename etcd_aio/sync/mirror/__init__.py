"""The blocking classes for those of `etcd_aio.mirror`.

Made by `python -m release.facade --write` from `etcd_aio.mirror`: do not edit.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.sync.mirror.follow import Follow as Follow
    from etcd_aio.sync.mirror.follow import follow as follow
    from etcd_aio.sync.mirror.mirror import Mirror as Mirror
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
