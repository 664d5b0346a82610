"""Place: where a contender stands in a line of keys, and what follows from the keys that it sees. Pure.

Theory. A contender creates a key of its own under the name. The keys are ordered by `create_revision`, which no two of
them share. A contender holds when no key that can stand before its own is left. Keys before it only ever vanish: a new
key gets a larger revision. So once that is true, it stays true for as long as the contender's own key exists.

The key of a contender ends with the lease that it is attached to; Go's, etcdctl's and the server's do, too. In a
read-write lock it may end with the time in nanoseconds instead, as with Go's recipe. Other keys under the name are
data, and stand in no one's way, also if their names look like that: nothing would ever delete them. A listing without
values is cheaper, but may lack the leases (etcd 3.7). So a place first goes by the names, and reads the one key that it
is to wait for; if that is data, it lists the leases from then on. Its own key has its lease for as long as it is as it
was created. A key that is put without its lease is none of a contender any more: that is as if it was deleted.

    state      meaning                                  may be followed by
    OUT        it has no key                            ENTERING
    ENTERING   its key is being created                 HELD (no key before it), LOOKING (there may be one, or too many
                                                        keys to see all at once), LEAVING, LOST
    LOOKING    the keys before it are being listed      HELD (none), WAITING (one to wait for), LEAVING, LOST (its own
                                                        key is not there)
    WAITING    it waits until the next key before its   LOOKING (gone, or it was data), LEAVING, LOST (its lease is
               own is deleted, or loses its lease       lost)
    HELD       it holds                                 LEAVING, LOST (lease, margin or own key)
    LEAVING    its key is being deleted                 OUT
    LOST       its key, or its lease, is gone           OUT

A waiter waits for the one key that is next before its own. If that is deleted, the waiter looks again: the contender
may have given up while others still stand before both. So a release wakes one waiter, whatever their number.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, Protocol

from etcd_aio.dataclass import dataclass

_DIGITS: Final = b"-0123456789abcdef"
_FEWEST_OF_TIME: Final = 10  # digits: a second in nanoseconds, since a clock may begin at 1970 when the machine starts

ENTRY_LIMIT: Final = 16
"""Keys that are listed where etcd applies the write that creates the key: few, since writes wait for it."""

SMALLEST_LOOK: Final = 2  # keys: its own and the next one


class PlaceState(Enum):
    """The state of a contender; see above."""

    __hash__ = object.__hash__  # an Enum's own is written in Python

    OUT = "out"
    ENTERING = "entering"
    LOOKING = "looking"
    WAITING = "waiting"
    HELD = "held"
    LEAVING = "leaving"
    LOST = "lost"


_MAY_FOLLOW: Final[Mapping[PlaceState, frozenset[PlaceState]]] = {
    PlaceState.OUT: frozenset({PlaceState.ENTERING}),
    PlaceState.ENTERING: frozenset({PlaceState.HELD, PlaceState.LOOKING, PlaceState.LEAVING, PlaceState.LOST}),
    PlaceState.LOOKING: frozenset({PlaceState.HELD, PlaceState.WAITING, PlaceState.LEAVING, PlaceState.LOST}),
    PlaceState.WAITING: frozenset({PlaceState.LOOKING, PlaceState.LEAVING, PlaceState.LOST}),
    PlaceState.HELD: frozenset({PlaceState.LEAVING, PlaceState.LOST}),
    PlaceState.LEAVING: frozenset({PlaceState.OUT}),
    PlaceState.LOST: frozenset({PlaceState.OUT}),
}


class Listed(Protocol):
    """A key as the server lists it: a `KeyValue`."""

    @property
    def key(self) -> bytes:
        """The key."""
        ...

    @property
    def create_revision(self) -> int:
        """The revision that created it."""
        ...

    @property
    def mod_revision(self) -> int:
        """The revision that wrote it last."""
        ...

    @property
    def lease(self) -> int:
        """The id of the lease that it is attached to; 0 if there is none, or it was listed without."""
        ...


def lease_key(prefix: bytes, lease: int) -> bytes:
    """The key of this prefix that ends with a lease in hexadecimal, as Go's, etcdctl's and v3lock's do."""
    return prefix + f"{lease:x}".encode()


@dataclass(frozen=True, slots=True)
class LineKeys:
    """Where the keys of a line are.

    Attributes:
        own: the prefix of the contender's own key.
        before: the prefix of all keys that can stand before it.
        kinds: what may follow that prefix, before the lease. Other keys under `before` belong to other names.
        name_leases: whether all clients let the keys end with their leases, and none with the time.
    """

    own: bytes
    before: bytes
    kinds: tuple[bytes, ...] = (b"",)
    name_leases: bool = True

    def key(self, lease: int) -> bytes:
        """The contender's own key; see `lease_key`."""
        return lease_key(self.own, lease)

    def has(self, kv: Listed) -> bool:
        """Whether a key under `before` is that of a contender: it ends with the lease that it is attached to."""
        if not kv.lease:
            return False
        number = self._number(kv.key)
        if number == lease_key(b"", kv.lease):
            return True
        return not self.name_leases and number.isdigit() and len(number) >= _FEWEST_OF_TIME

    def may_have(self, key: bytes) -> bool:
        """Whether a key under `before` is named like that of a contender."""
        number = self._number(key)
        return bool(number) and not number.strip(_DIGITS)

    def _number(self, key: bytes) -> bytes:
        """The end of the key, if it is of a kind of this line."""
        start = len(self.before)
        for kind in self.kinds:
            if key.startswith(kind, start):
                return key[start + len(kind) :]
        return b""

    @property
    def lists_own(self) -> bool:
        """Whether the contender's own key is under `before`."""
        return self.own.startswith(self.before)


def lock_keys(name: bytes) -> LineKeys:
    """The line of a lock or an election: `<name>/<lease>`, each behind all older ones."""
    return LineKeys(name + b"/", name + b"/")


def reader_keys(name: bytes) -> LineKeys:
    """The line of readers: `<name>/read/<lease>`, each behind the older writers."""
    return LineKeys(name + b"/read/", name + b"/write/", name_leases=False)


def writer_keys(name: bytes) -> LineKeys:
    """The line of writers: `<name>/write/<lease>`, each behind all older readers and writers."""
    return LineKeys(name + b"/write/", name + b"/", (b"read/", b"write/"), name_leases=False)


class Place:
    """The place of one contender.

    Args:
        keys: where the keys of its line are; an attribute, too.
        lease: the id of the lease that its own key is attached to.

    Attributes:
        key: the own key.
        revision: the `create_revision` of that key, once it is created.
        state: its state.
        limit: the number of keys that the next look asks for.
        lists_leases: whether the next look asks for the leases, too.
        ahead: the key to wait for, while it is WAITING.
    """

    __slots__ = ("_lease", "ahead", "key", "keys", "limit", "lists_leases", "revision", "state")

    def __init__(self, keys: LineKeys, lease: int) -> None:
        self.keys = keys
        self._lease = lease
        self.key = keys.key(lease)
        self.revision = 0
        self.state = PlaceState.OUT
        self.limit = SMALLEST_LOOK
        self.lists_leases = False
        self.ahead: Listed | None = None

    def move(self, state: PlaceState) -> None:
        """Go to another state.

        Raises:
            ValueError: the table does not let it follow, which is a bug of the caller.
        """
        if state not in _MAY_FOLLOW[self.state]:
            raise ValueError(f"{state.name} cannot follow {self.state.name}")
        self.state = state

    def created(self, revision: int, found: Sequence[Listed], limit: int = ENTRY_LIMIT) -> None:
        """The key is there.

        Args:
            revision: the revision that created it.
            found: the first `limit` keys under `before`, as they were right after that; their leases may be left out.
            limit: the number of keys that were asked for.
        """
        self.revision = revision
        is_first = len(found) < limit and not any(
            kv.create_revision < revision and self.keys.may_have(kv.key) for kv in found
        )
        self.move(PlaceState.HELD if is_first else PlaceState.LOOKING)

    def looked(self, found: Sequence[Listed], own: Listed | None) -> None:
        """The keys before it were listed.

        Args:
            found: the `limit` youngest keys under `before` that are not younger than its own, youngest first, with
                their leases if `lists_leases`.
            own: its own key, if there is such a key; with its lease if `lists_leases`.
        """
        if own is None or (own.key, own.create_revision) != (self.key, self.revision):
            self.move(PlaceState.LOST)
            return
        if self.lists_leases:
            if own.lease != self._lease:
                self.move(PlaceState.LOST)
                return
            self.ahead = next((kv for kv in found if kv.key != self.key and self.keys.has(kv)), None)
        elif own.mod_revision != self.revision:  # it was written again, maybe without its lease
            self.lists_leases = True
            return
        else:
            self.ahead = next((kv for kv in found if kv.key != self.key and self.keys.may_have(kv.key)), None)
        if self.ahead is not None:
            self.move(PlaceState.WAITING)
        elif len(found) < self.limit:
            self.move(PlaceState.HELD)
        else:  # all of them are data, or belong to other names: look again, at more
            self.limit *= 2

    def checked(self, present: Listed | None) -> None:
        """The key to wait for is this now, by a read after its watch began, or an event of that; None if it is gone."""
        ahead = self.ahead
        if ahead is None or present is None or present.create_revision != ahead.create_revision:
            self.vanished()
        elif not self.keys.has(present):
            self.lists_leases = True
            self.vanished()

    def vanished(self) -> None:
        """The key to wait for was deleted, or the wait for that cannot go on."""
        self.ahead = None
        self.move(PlaceState.LOOKING)
