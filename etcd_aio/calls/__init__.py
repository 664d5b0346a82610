"""Calls: what users call on a store, written once over a backend, and what recipes write through."""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.calls.keys import KeyCalls as KeyCalls
    from etcd_aio.calls.store_calls import StoreCalls as StoreCalls
    from etcd_aio.calls.store_calls import check_store as check_store
    from etcd_aio.calls.writer import Writer as Writer
    from etcd_aio.calls.writer import is_exact as is_exact
    from etcd_aio.calls.writer import writer_for as writer_for
else:
    __getattr__, __dir__, __all__ = late_names(__name__, ("check_store",))
