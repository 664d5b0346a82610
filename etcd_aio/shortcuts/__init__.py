"""Shortcuts: the methods of a client that stand on its others, or make objects of the layers above it.

The layers above are imported at their first use. A store that wraps another one has all of them too: see `StoreCalls`.
"""

from etcd_aio.shortcuts.client_like import Block as Block
from etcd_aio.shortcuts.client_like import ClientLike as ClientLike
from etcd_aio.shortcuts.shortcuts import Shortcuts as Shortcuts
from etcd_aio.shortcuts.store_calls import StoreCalls as StoreCalls
