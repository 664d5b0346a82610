"""Jobs: the keys of a work queue, and which of its jobs are free, by what a worker has listed and watched. Pure.

    <name>/items/<priority>/<number>      the payload; with an id it is `<name>/items/<priority>/<number>/<id>`
    <name>/claims/<the same>              the worker that has the job; under its lease
    <name>/tries/<the same>               put at each claim, so its version is the number of attempts
    <name>/delays/<the same>              the time before which it is not free, in seconds since 1970
    <name>/dead/<the same>                the payload of a job that was given up
    <name>/reasons/<the same>             why it was given up
    <name>/ids/<id>                       that part of the key of the job with this id
    <name>/workers/<lease>                a worker; under its lease

A job is free if it has an item and no claim, and its delay is over.
"""

import re
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final

from etcd_aio import Event, KeyValue
from etcd_aio.arguments import finite_seconds
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import InvalidRequestError
from etcd_aio.recipes.queue.known_items import KnownItem, KnownItems
from etcd_aio.types import shown_key

WINDOW: Final = 256
"""Free jobs that a worker keeps in mind; it lists again when they are taken."""

_LONGEST_DELAY: Final = 1e9  # seconds, three decades
_JOB: Final = re.compile(rb"\d{5}/\d{20}(/.+)?", re.DOTALL)


class Kind(Enum):
    """The content of a key of a job."""

    ITEM = b"items/"
    CLAIM = b"claims/"
    TRIES = b"tries/"
    DELAY = b"delays/"
    DEAD = b"dead/"
    REASON = b"reasons/"


_BY_NAME: Final = {kind.value: kind for kind in Kind}


class JobKeys:
    """The keys of one work queue.

    Attributes:
        prefix: of all of them.
        name: of the queue, for logs and errors.
        what: the same, and that it is a work queue.
    """

    def __init__(self, name: bytes) -> None:
        self.prefix = name + b"/"
        self.name = shown_key(name)[1:]
        self.what = f"work queue {self.name}"

    def of(self, kind: Kind, job: bytes = b"") -> bytes:
        """The key of a job, or the prefix of all keys of a kind."""
        return self.prefix + kind.value + job

    def id_key(self, id: bytes) -> bytes:
        """The key of an id."""
        return self.prefix + b"ids/" + id

    def worker_key(self, lease: int) -> bytes:
        """The key of a worker."""
        return self.prefix + b"workers/%x" % lease

    def parsed(self, key: bytes) -> tuple[Kind, bytes] | None:
        """The kind of a key, and its job; None if it is another key."""
        name, slash, job = key[len(self.prefix) :].partition(b"/")
        kind = _BY_NAME.get(name + slash)
        return None if kind is None or _JOB.fullmatch(job) is None else (kind, job)


def job_name(priority: int, number: int, id: bytes) -> bytes:
    """The part of its keys that names a job."""
    return b"%05d/%020d" % (priority, number) + (b"/" + id if id else b"")


def id_of(job: bytes) -> bytes:
    """The id of a job; empty if it has none."""
    return job.split(b"/", 2)[2] if job.count(b"/") > 1 else b""


def checked_delay(delay: float) -> float:
    """The seconds of a delay.

    Raises:
        InvalidRequestError: they are negative, or too many.
        TypeError: they are no number.
    """
    seconds = finite_seconds(delay, "delay")
    if seconds > _LONGEST_DELAY:
        raise InvalidRequestError(f"delay must be from 0 to {_LONGEST_DELAY:g} seconds, got {delay!r}")
    return seconds


@dataclass(frozen=True, slots=True)
class FreeJob:
    """A job that may be claimed.

    Attributes:
        job: its name.
        revision: `mod_revision` of the item.
        delay: `mod_revision` of its delay; 0 if it has none.
    """

    job: bytes
    revision: int
    delay: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that is there.

    Attributes:
        revision: its `create_revision`.
        lease: of the worker.
    """

    revision: int
    lease: int


@dataclass(frozen=True, slots=True)
class _Delay:
    revision: int
    until: float


class Board:
    """The first jobs of a work queue, and the claims and delays of all.

    Attributes:
        limit: how many items are to be listed.
        claims: the claims, by job.
        strays: the jobs whose claims were seen to have no lease. No worker writes such ones; they would never end.
    """

    def __init__(self, keys: JobKeys) -> None:
        self._keys = keys
        self._items = KnownItems()
        self._delays: dict[bytes, _Delay] = {}
        self._revision = 0  # of the listing
        self._applied = 0  # up to which changes are known
        self._doubtful: dict[bytes, int] = {}  # jobs that have changed at or before this revision
        self.claims: dict[bytes, Claim] = {}
        self.strays: set[bytes] = set()
        self.limit = WINDOW

    @property
    def is_complete(self) -> bool:
        """Whether no job is left out."""
        return self._items.is_complete

    def load(self, listed: Iterable[KeyValue], revision: int, *, is_complete: bool) -> None:
        """Know what was listed at a revision, and nothing else."""
        self.claims, self.strays, self._delays = {}, set(), {}
        items: list[KnownItem] = []
        for kv in listed:
            kind, job = self._keys.parsed(kv.key) or (None, b"")
            if kind is Kind.ITEM:
                items.append(KnownItem(job, kv.mod_revision))
            else:
                self._put(kind, job, kv)
        self._items.replace(items, is_complete=is_complete)
        self._revision = self._applied = revision
        self._doubtful = {job: until for job, until in self._doubtful.items() if until > revision}
        self.limit = self._most()

    def _most(self) -> int:
        """Items that are kept in mind: enough free ones, though many are claimed or delayed."""
        return WINDOW + len(self.claims) + len(self._delays)

    def apply(self, event: Event) -> tuple[Kind, bytes] | None:
        """A key has changed. A member that is behind also delivers changes before the listing.

        Returns the kind of the key, and its job; None if it is another key.
        """
        parsed = self._keys.parsed(event.key)
        self._applied = max(self._applied, event.revision)
        if parsed is not None and event.revision > self._revision:
            self._apply(event, *parsed)
        return parsed

    def _apply(self, event: Event, kind: Kind, job: bytes) -> None:
        self._doubtful.pop(job, None)
        if event.is_put:
            self._put(kind, job, event.kv)
        elif kind is Kind.ITEM:
            self._items.remove(job)
        elif kind is Kind.CLAIM:
            self.claims.pop(job, None)
            self.strays.discard(job)
        elif kind is Kind.DELAY:
            self._delays.pop(job, None)

    def _put(self, kind: Kind | None, job: bytes, kv: KeyValue) -> None:
        if kind is Kind.ITEM:
            self._items.add(KnownItem(job, kv.mod_revision), self._most())
        elif kind is Kind.CLAIM:
            self.claims[job] = Claim(kv.create_revision, kv.lease)
            if kv.lease:
                self.strays.discard(job)
            else:
                self.strays.add(job)
        elif kind is Kind.DELAY:
            self._delays[job] = _Delay(kv.mod_revision, seconds_in(kv.value))

    def doubt(self, job: bytes, revision: int) -> None:
        """A job is not as it was known, by an answer at a revision: it is not free until its change is delivered."""
        if revision > self._applied:
            self._doubtful[job] = revision

    def free(self, count: int, now: float, window: float, random: Callable[[], float]) -> list[FreeJob]:
        """Choose free jobs at a time in seconds since 1970, as `KnownItems.pick` chooses items."""
        found: list[FreeJob] = []
        for job in self._items.keys:
            delay = self._delays.get(job)
            if self._is_open(job) and (delay is None or delay.until <= now):
                found.append(FreeJob(job, self._items.revisions[job], 0 if delay is None else delay.revision))
                if len(found) >= count + window - 1:
                    break
        first = int(random() * min(len(found), window))
        return found[first : first + count]

    def next_due(self, now: float) -> float | None:
        """When the next delay is over, in seconds since 1970; None if there is none."""
        later = (
            delay.until for job, delay in self._delays.items() if job in self._items.revisions and self._is_open(job)
        )
        return min((until for until in later if until > now), default=None)

    def _is_open(self, job: bytes) -> bool:
        return job not in self.claims and self._doubtful.get(job, 0) <= self._applied


def seconds_in(value: bytes) -> float:
    """The time in the value of a delay; 0, which is over, if it is none."""
    try:
        return float(value)
    except ValueError:
        return 0.0
