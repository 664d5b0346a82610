"""SavedState: the state of a rendezvous in one key, with its `mod_revision` as the fencing token."""

from typing import Final

from etcd_aio import KeyValue
from etcd_aio.contrib.torch.swaps import Swaps
from etcd_aio.sync import Store

_MAGIC: Final = b"torch-rendezvous:"


class CorruptStateError(ValueError):
    """The key has something else than the state of a rendezvous."""


class SavedState:
    """The state.

    Args:
        store: where the key is.
        swaps: writes it.
        key: the key.
    """

    def __init__(self, store: Store, swaps: Swaps, key: str) -> None:
        self._store = store
        self._swaps = swaps
        self._key = key

    def get(self) -> tuple[bytes, int] | None:
        """The state and its token; None if there is none.

        Raises:
            CorruptStateError: the key has something else.
        """
        kv = self._store.get(self._key)
        return None if kv is None else _decoded(kv)

    def set(self, state: bytes, token: object = None) -> tuple[bytes, int, bool] | None:
        """Replace the state.

        Args:
            state: the new state.
            token: of the state that it replaces; None if there must be none. A token that cannot be right is like one
                that is old.

        Returns:
            The state that is stored then, its token, and whether it is the new one; None if nothing is stored.

        Raises:
            CorruptStateError: the token does not match, and the key has something else than a state.
        """
        revision = 0 if token is None else token
        if type(revision) is not int or not (token is None or 0 < revision < 1 << 63):
            found = self.get()
            return None if found is None else (*found, False)
        swap = self._swaps.swap(self._key, revision, _MAGIC + state)
        if swap.is_done:
            return state, swap.revision, True
        return None if swap.present is None else (*_decoded(swap.present), False)


def _decoded(kv: KeyValue) -> tuple[bytes, int]:
    if not kv.value.startswith(_MAGIC):
        raise CorruptStateError(f"{kv.key!r} has no state of a rendezvous")
    return kv.value[len(_MAGIC) :], kv.mod_revision
