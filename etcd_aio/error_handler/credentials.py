"""Credentials: how a client proves who it is, kept where nothing prints, pickles or copies it.

Knows: the three kinds, and what none of them may do. Never knows: RPCs, when a token is fetched or sent.
"""

from collections.abc import Awaitable, Callable
from typing import NoReturn, Self, TypeAlias

from etcd_aio.errors import ConfigError
from etcd_aio.types import is_encodable

TokenFunction: TypeAlias = Callable[[], Awaitable[str]]
"""Gives a token whenever one is needed; an empty one is none."""


class _Secret:
    """What all kinds have in common: they show nothing and go nowhere."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("credentials are not pickled: give them to each client where it is made")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self  # `dataclasses.asdict` copies what it shows


class Password(_Secret):
    """A user's name and password, for which etcd gives tokens.

    Raises:
        ConfigError: one of them is empty, or no text.
    """

    __slots__ = ("name", "password")

    def __init__(self, name: str, password: str) -> None:
        for value, what in ((name, "name"), (password, "password")):
            if not isinstance(value, str) or not value or not is_encodable(value):
                raise ConfigError(f"auth must be (name, password), both texts that are not empty; look at the {what}")
        self.name = name
        self.password = password

    def forget(self) -> None:
        """The client is closed."""
        self.password = ""


class StaticToken(_Secret):
    """A token that was made elsewhere, such as a JWT. Nobody here can renew it.

    Raises:
        ConfigError: it is empty, or none that a header can carry.
    """

    __slots__ = ("token",)

    def __init__(self, token: str) -> None:
        if not token or not is_token(token):
            raise ConfigError("token must be a text of visible ASCII characters, or an async function that gives one")
        self.token = token

    def forget(self) -> None:
        """The client is closed."""
        self.token = ""


class TokenSource(_Secret):
    """An async function of the user's that gives tokens."""

    __slots__ = ("function",)

    def __init__(self, function: TokenFunction) -> None:
        self.function: TokenFunction = function

    def forget(self) -> None:
        """The client is closed. What the function knows is its owner's."""


Credentials: TypeAlias = Password | StaticToken | TokenSource


def credentials_from(auth: tuple[str, str] | None, token: str | TokenFunction | None) -> Credentials | None:
    """The credentials that a user has given; None for none.

    Raises:
        ConfigError: both kinds are given, or one that cannot be right. The error repeats nothing of them.
    """
    if auth is not None and token is not None:
        raise ConfigError("auth and token exclude each other: a client is one user")
    if auth is not None:
        if not isinstance(auth, tuple | list) or len(auth) != 2:
            raise ConfigError("auth must be a pair: (name, password)")
        return Password(*auth)
    if token is None:
        return None
    if callable(token):
        return TokenSource(token)
    return StaticToken(token)


def is_token(text: object) -> bool:
    """Whether a header can carry it as it stands; the empty text is no token at all, and fine."""
    return isinstance(text, str) and text.isascii() and text.isprintable() and " " not in text
