"""Exactly-once writes: each write is applied once, whatever happens to connections, members and answers.

`slot.py` is the state machine of one slot, the key through which writes are made one at a time; `guarded.py` has the
txns, `write_verdicts.py` says what an answer means, `replay.py` computes a result that was lost: these are pure.
`slots.py` holds the slots and their lease, `settle.py` finds out what became of writes that were given up, `ids.py`
holds idempotency ids. `once.py` is what users see. Everything stands on the public client.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.once.once import DEFAULT_PREFIX as DEFAULT_PREFIX
    from etcd_aio.once.once import DEFAULT_SLOTS as DEFAULT_SLOTS
    from etcd_aio.once.once import DEFAULT_TTL as DEFAULT_TTL
    from etcd_aio.once.once import DEFAULT_WINDOW as DEFAULT_WINDOW
    from etcd_aio.once.once import ExactlyOnce as ExactlyOnce
    from etcd_aio.once.results import OnceStatistics as OnceStatistics
    from etcd_aio.once.results import Outcome as Outcome
    from etcd_aio.once.results import WriteResult as WriteResult
    from etcd_aio.types import ReplayedDeleteResult as ReplayedDeleteResult
    from etcd_aio.types import ReplayedPutResult as ReplayedPutResult
    from etcd_aio.types import ReplayedTxnResult as ReplayedTxnResult
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
