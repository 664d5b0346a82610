"""Numbers for the keys of items: the nanoseconds since 1970, larger with every call in this process."""

import random
import threading
import time
from typing import Final

_DRAWN: Final = 1000  # the last three digits are random, so that two processes seldom give the same number

_lock: Final = threading.Lock()
_last = 0


def next_number() -> int:
    """A number larger than all before it in this process, whatever the clock does. Thread-safe."""
    global _last
    now = time.time_ns() // _DRAWN * _DRAWN + random.randrange(_DRAWN)
    with _lock:
        _last = max(now, _last + 1)
        return _last
