"""Portal: how blocking code uses objects of asyncio, which live in the event loop of one thread."""

from etcd_aio.portal.block import Block
from etcd_aio.portal.callback import in_caller, own_thread
from etcd_aio.portal.facade import Facade, register, unwrap
from etcd_aio.portal.iterator import BlockingIterator, BufferedIterator
from etcd_aio.portal.loop_thread import Holder, LoopThread, hold
from etcd_aio.portal.losable import Losable, LosableMaker
from etcd_aio.portal.portal import Portal

__all__ = [
    "Block",
    "BlockingIterator",
    "BufferedIterator",
    "Facade",
    "Holder",
    "LoopThread",
    "Losable",
    "LosableMaker",
    "Portal",
    "hold",
    "in_caller",
    "own_thread",
    "register",
    "unwrap",
]
