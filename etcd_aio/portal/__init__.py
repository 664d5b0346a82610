"""Portal: how blocking code uses objects of asyncio, which live in the event loop of one thread."""

from etcd_aio.portal.block import Block as Block
from etcd_aio.portal.call import Call as Call
from etcd_aio.portal.callback import in_caller as in_caller
from etcd_aio.portal.callback import in_worker as in_worker
from etcd_aio.portal.callback import own_thread as own_thread
from etcd_aio.portal.facade import Facade as Facade
from etcd_aio.portal.facade import facade_of_store as facade_of_store
from etcd_aio.portal.facade import register as register
from etcd_aio.portal.facade import unwrap as unwrap
from etcd_aio.portal.iterator import BlockingIterator as BlockingIterator
from etcd_aio.portal.iterator import BufferedIterator as BufferedIterator
from etcd_aio.portal.loop_thread import Holder as Holder
from etcd_aio.portal.loop_thread import LoopThread as LoopThread
from etcd_aio.portal.loop_thread import hold as hold
from etcd_aio.portal.losable import Losable as Losable
from etcd_aio.portal.losable import LosableMaker as LosableMaker
from etcd_aio.portal.portal import Portal as Portal
