"""The blocking classes for those of `etcd_aio.fake`.

Made by `python -m release.facade --write` from `etcd_aio.fake`: do not edit.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.sync.fake.fake_etcd import FakeEtcd as FakeEtcd
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
