"""StoreDoubts: the listeners for a store that may be another one than before, as after a restore from a backup. Pure.

Theory. What a client knows of the store stays true for as long as the store lives: a key that it has deleted is not
there, a claim that it has seen is. A store that was restored, or wiped, has other facts, and often the same cluster id
and the same leases. A store is replaced while none of its members runs. So each client of it loses all its connections,
or is answered with a revision that is lower than one before.

Neither proves that the store is another one: each outage has the first, and a member that is behind the second. So it
is only a doubt, and the listeners compare what they know with what the store has. That changes nothing in a store that
is the same.
"""

from collections.abc import Callable


class StoreDoubts:
    """The listeners of one client, called in the order in which they were added."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: dict[Callable[[], None], None] = {}

    def __len__(self) -> int:
        return len(self._listeners)

    def add(self, listener: Callable[[], None]) -> None:
        """Call this at each doubt from now on, before a call is answered by the store that may be another one."""
        self._listeners[listener] = None

    def remove(self, listener: Callable[[], None]) -> None:
        """Call it no more. Safe to repeat."""
        self._listeners.pop(listener, None)

    def tell(self) -> None:
        """Call all listeners: the store may be another one."""
        for listener in tuple(self._listeners):
            listener()
