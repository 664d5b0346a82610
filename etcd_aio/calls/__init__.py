"""Calls: what users call on a store, written once over a backend, and what recipes write through."""

from etcd_aio.calls.keys import KeyCalls as KeyCalls
from etcd_aio.calls.store_calls import StoreCalls as StoreCalls
from etcd_aio.calls.writer import Writer as Writer
from etcd_aio.calls.writer import is_exact as is_exact
from etcd_aio.calls.writer import writer_for as writer_for
