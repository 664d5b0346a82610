"""KeySpace: whose keys a store or a writer names, so that a recipe writes where it reads."""

from etcd_aio.dataclass import dataclass
from etcd_aio.types import shown_key


@dataclass(frozen=True, slots=True, repr=False)
class KeySpace:
    """The keys that a store or a writer names: those of a client, or of a namespace of it.

    Two of them are equal if the same key means the same to both. Two clients have different ones, also if both are
    connected to the same cluster, since that is not known before the first answer.

    Attributes:
        client: stands for the client: the same object in all that share its connections.
        prefix: what the keys begin with in the store; empty for the whole store.
    """

    client: object
    prefix: bytes = b""

    def within(self, prefix: bytes) -> "KeySpace":
        """The key space of a namespace in this one."""
        return KeySpace(self.client, self.prefix + prefix)

    def __str__(self) -> str:
        return f"the keys that begin with {shown_key(self.prefix)}" if self.prefix else "the whole store"

    def __repr__(self) -> str:
        return f"<KeySpace of {self}>"


def key_space_of(user: object) -> KeySpace | None:
    """The key space of a store or a writer; None if it does not tell, as one of an application may."""
    space = getattr(user, "key_space", None)
    return space if isinstance(space, KeySpace) else None
