"""HoldOptions: the arguments that locks, elections and double barriers have in common, checked once."""

from typing import Generic, Self, TypeVar

from etcd_aio.arguments import cancels_block, checked_margin, encode_key, whole_number
from etcd_aio.calls import StoreCalls, check_store
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import EtcdError
from etcd_aio.lease import LeaseSource, OnLost
from etcd_aio.types import KeyLike, shown_key

E = TypeVar("E", bound=EtcdError)


@dataclass(frozen=True, slots=True)
class Subject(Generic[E]):
    """The words and classes of errors about one thing that is held or waited for.

    Attributes:
        what: its kind and name, such as "lock 'jobs/42'".
        lost: the class of the error that a loss raises.
        late: the class of the error that a timeout raises.
        reached: the aim of a wait for it, as a participle.
    """

    what: str
    lost: type[E]
    late: type[EtcdError]
    reached: str = "acquired"


@dataclass(frozen=True, slots=True)
class HoldOptions(Generic[E]):
    """The options of something that is held by a key with a lease.

    Attributes:
        store: carries out the calls.
        source: lends the lease.
        name: its name.
        ttl: of the lease, in seconds.
        margin: seconds before the local deadline of the lease at which it is lost.
        cancels: whether a loss cancels the task in the block.
        subject: its errors.
    """

    store: StoreCalls
    source: LeaseSource
    name: bytes
    ttl: int
    margin: float
    cancels: bool
    subject: Subject[E]

    @classmethod
    def checked(
        cls,
        store: StoreCalls,
        source: LeaseSource,
        name: KeyLike,
        ttl: int,
        margin: float | None,
        on_lost: OnLost,
        *,
        kind: str,
        lost: type[E],
        late: type[EtcdError],
        reached: str = "acquired",
    ) -> Self:
        """Check the arguments of a user; `kind` is a word for errors.

        Raises:
            InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
        """
        check_store(store)
        encoded = encode_key(name, "name")
        return cls(
            store,
            source,
            encoded,
            whole_number(ttl, "ttl", minimum=1),
            checked_margin(margin, ttl),
            cancels_block(on_lost),
            Subject(f"{kind} {shown_key(encoded)[1:]}", lost, late, reached),
        )
