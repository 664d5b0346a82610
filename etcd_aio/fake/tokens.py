"""The tokens of a member: each belongs to a user, and dies when it is not used for a while. Pure."""

from dataclasses import dataclass, field
from typing import Final

_LIFE: Final = 300.0  # seconds after the last use; etcd's default of --auth-token-ttl


@dataclass(slots=True)
class Tokens:
    """The tokens that one member knows. It forgets them when it stops."""

    _known: dict[str, tuple[str, float]] = field(default_factory=dict, repr=False)

    def assign(self, token: str, user: str, now: float) -> None:
        """Take a new token."""
        self._known[token] = user, now + _LIFE

    def user_of(self, token: str, now: float) -> str | None:
        """The user of a token, which lives longer by that; None for a token that is not known any more."""
        user, expiry = self._known.get(token, ("", 0.0))
        if not user or expiry < now:
            self._known.pop(token, None)
            return None
        self.assign(token, user, now)
        return user

    def forget(self, user: str | None = None) -> None:
        """Forget the tokens of a user, or all."""
        self._known = {} if user is None else {one: known for one, known in self._known.items() if known[0] != user}
