"""The crowd: what the dials of all clients of one event loop share, so that together they are no storm.

It belongs to the loop, and ends with it. So no thread shares it with another, and a forked process begins anew.
"""

import asyncio
from typing import Final
from weakref import WeakKeyDictionary

from etcd_aio.transport.dial_gate import DialGate
from etcd_aio.transport.patience import Patience

_crowds: Final["WeakKeyDictionary[asyncio.AbstractEventLoop, Crowd]"] = WeakKeyDictionary()


class Crowd:
    """See above.

    Attributes:
        gate: the turns to dial.
        patience: how long peers may be silent.
    """

    def __init__(self) -> None:
        self.gate = DialGate()
        self.patience = Patience()


def crowd() -> Crowd:
    """Return that of the running loop."""
    loop = asyncio.get_running_loop()
    found = _crowds.get(loop)
    if found is None:
        found = _crowds[loop] = Crowd()
    return found


def shared_patience() -> Patience:
    """Return the patience of all clients of the running loop."""
    return crowd().patience
