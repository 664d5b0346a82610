"""The blocking classes for those of `etcd_aio.calls`.

Made by `python -m release.facade --write` from `etcd_aio.calls`: do not edit.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.sync.calls.keys import KeyCalls as KeyCalls
    from etcd_aio.sync.calls.store_calls import StoreCalls as StoreCalls
    from etcd_aio.sync.calls.writer import Writer as Writer
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
