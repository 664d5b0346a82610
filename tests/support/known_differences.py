"""How answers of the fake may differ from those of real servers, and what it does not follow them in: one table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Final, cast

from etcd_aio import methods, pb

_PATIENCE: Final = 60  # seconds that a run may need on a loaded machine; leases are granted for many more
_SORT_ORDERS: Final = frozenset(pb.RangeRequestSortOrder)
_SORT_TARGETS: Final = frozenset(pb.RangeRequestSortTarget)


@dataclass(frozen=True)
class KnownDifference:
    """One difference.

    Attributes:
        what: the difference.
        reason: why it stays.
        versions: the minor versions of real servers that have it; empty for all.
        for_users: only calls of users have it.
        avoid: changes a message of a request such that the difference does not show.
        forget: takes the difference out of a message of an answer.
    """

    what: str
    reason: str
    versions: tuple[str, ...] = ()
    for_users: bool = False
    avoid: Callable[[pb.Message], None] | None = None
    forget: Callable[[pb.Message], None] | None = None

    def holds_for(self, version: str) -> bool:
        """Whether servers of a version have it."""
        return not self.versions or ".".join(version.split(".")[:2]) in self.versions


def _forget_ids(message: pb.Message) -> None:
    if isinstance(message, pb.ResponseHeader):
        message.cluster_id, message.member_id = bool(message.cluster_id), bool(message.member_id)
        message.raft_term = bool(message.raft_term)


def _forget_passed_time(message: pb.Message) -> None:
    if not isinstance(message, pb.LeaseTimeToLiveResponse):
        return
    if message.granted_ttl - _PATIENCE <= message.ttl <= message.granted_ttl:
        message.ttl = message.granted_ttl


def _forget_order_of_keys(message: pb.Message) -> None:
    if isinstance(message, pb.LeaseTimeToLiveResponse):
        message.keys.sort()


def _sort_by_what_exists(message: pb.Message) -> None:
    if isinstance(message, pb.RangeRequest):
        if message.sort_order not in _SORT_ORDERS:
            message.sort_order = pb.RangeRequestSortOrder.NONE
        if message.sort_target not in _SORT_TARGETS:
            message.sort_target = pb.RangeRequestSortTarget.KEY


def _begin_at_what_exists(message: pb.Message) -> None:
    if isinstance(message, pb.WatchCreateRequest):
        message.start_revision = max(message.start_revision, 0)


def _forget_what_is_stored(message: pb.Message) -> None:
    match message:
        case pb.HashResponse() | pb.HashKvResponse():
            message.hash = 0
        case pb.StatusResponse():
            message.db_size = message.db_size_in_use = message.db_size_quota = message.leader = 0
            message.raft_index = message.raft_applied_index = message.raft_term = 0
        case pb.Member():
            message.id, message.name, message.peer_urls, message.client_urls = 1, "", [], []


def _bound_deletions(message: pb.Message) -> None:
    if isinstance(message, pb.TxnRequest):
        parts = list(_parts(message))
        if any(isinstance(one, pb.PutRequest) for one in parts):
            for one in parts:
                if isinstance(one, pb.DeleteRangeRequest) and one.range_end == b"\x00":
                    one.range_end = b"\xff\xff"


def _end_at_the_key(message: pb.Message) -> None:
    if not isinstance(message, pb.RangeRequest | pb.DeleteRangeRequest | pb.WatchCreateRequest | pb.Compare):
        return
    if message.range_end not in (b"", b"\x00"):
        message.range_end = max(message.key, message.range_end)


def _ask_nothing(message: pb.Message) -> None:
    if isinstance(message, pb.WatchRequest):
        message.progress_request = None


KNOWN_DIFFERENCES: Final = (
    KnownDifference(
        "ids of cluster and members, and the Raft term",
        "each cluster draws its own",
        forget=_forget_ids,
    ),
    KnownDifference(
        "the remaining time of a lease",
        "time goes on between the two calls",
        forget=_forget_passed_time,
    ),
    KnownDifference(
        "hashes, sizes, places in the log, names and URLs of members",
        "the fake has no files, no log and no addresses",
        forget=_forget_what_is_stored,
    ),
    KnownDifference(
        "the order of the keys of a lease",
        "etcd's is that of a map of Go, a new one each time; the fake sorts them",
        forget=_forget_order_of_keys,
    ),
    KnownDifference(
        "transactions that delete all keys from one on, without an end, and put one of these",
        "the server does not see that they write a key twice, and crashes at once or later; the fake refuses them, as"
        " the client does",
        avoid=_bound_deletions,
    ),
    KnownDifference(
        "sort orders and targets that do not exist",
        "the server crashes",
        ("3.4", "3.5"),
        avoid=_sort_by_what_exists,
    ),
    KnownDifference(
        "watches that begin at a negative revision",
        "the server does not refuse them, and sends what it happens to find",
        ("3.4",),
        avoid=_begin_at_what_exists,
    ),
    KnownDifference(
        "what two kinds of alarms at once forbid",
        "it depends on their order, in some releases even after one has ended; no history has two kinds at once",
    ),
    KnownDifference(
        "requests for the progress of watchers of which some are behind",
        "the server answers them later, when an event passes by; the fake ignores them, as newer servers do",
        ("3.4",),
        avoid=_ask_nothing,
    ),
    KnownDifference(
        "intervals that end before they begin, of users who may use the key at their beginning",
        "the server's answer depends on the shape of the tree in which it keeps the permissions of the user; the fake"
        " allows them, and they have no keys",
        for_users=True,
        avoid=_end_at_the_key,
    ),
)


def avoid(request: pb.Message, version: str, user: str = "") -> None:
    """Change a request to a server of a version such that no known difference shows."""
    for known in KNOWN_DIFFERENCES:
        if known.avoid is not None and known.holds_for(version) and (user or not known.for_users):
            for message in _parts(request):
                known.avoid(message)


def forget(answer: pb.Message, version: str) -> None:
    """Take the known differences out of an answer."""
    for known in KNOWN_DIFFERENCES:
        if known.forget is not None and known.holds_for(version):
            for message in _parts(answer):
                known.forget(message)


def is_served(method: methods.AnyMethod, version: str) -> bool:
    """Whether servers of a version have an RPC."""
    return not method.since or tuple(map(int, method.since.split("."))) <= tuple(map(int, version.split(".")[:2]))


def _parts(message: pb.Message) -> Iterator[pb.Message]:
    """A message, and all those in it."""
    yield message
    for field in fields(cast("Any", message)):
        value: Any = getattr(message, field.name)
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, pb.Message):
                yield from _parts(one)
