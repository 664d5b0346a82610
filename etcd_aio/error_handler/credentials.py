"""Credentials: the name and the secrets of the client; nothing prints, pickles or copies them."""

from collections.abc import Awaitable, Callable
from typing import NoReturn, Self, TypeAlias

from etcd_aio.arguments import is_encodable
from etcd_aio.errors import ConfigError

TokenFunction: TypeAlias = Callable[[], Awaitable[str]]
"""Returns a token whenever one is needed; the empty text means that none is needed."""


class _Secret:
    """The base of all kinds: they are never shown, pickled or copied."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("credentials are not pickled: give them to each client where it is made")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self  # `dataclasses.asdict` makes deep copies


class Password(_Secret):
    """A user's name and password, for which etcd gives tokens.

    Raises:
        ConfigError: one of them is empty, or not a text.
    """

    __slots__ = ("name", "password")

    def __init__(self, name: str, password: str) -> None:
        for value, what in ((name, "name"), (password, "password")):
            if not isinstance(value, str) or not value or not is_encodable(value):
                raise ConfigError(f"auth must be (name, password), both texts that are not empty; look at the {what}")
        self.name = name
        self.password = password

    def forget(self) -> None:
        """Forget the secret: the client is closed."""
        self.password = ""


class StaticToken(_Secret):
    """A token that was made elsewhere, such as a JWT. The client cannot renew it.

    Raises:
        ConfigError: the token is empty, or a header cannot carry it.
    """

    __slots__ = ("token",)

    def __init__(self, token: str) -> None:
        if not token or not is_token(token):
            raise ConfigError("token must be a text of visible ASCII characters, or an async function that gives one")
        self.token = token

    def forget(self) -> None:
        """Forget the secret: the client is closed."""
        self.token = ""


class TokenSource(_Secret):
    """An async function of the application that returns tokens."""

    __slots__ = ("function",)

    def __init__(self, function: TokenFunction) -> None:
        self.function: TokenFunction = function

    def forget(self) -> None:
        """Do nothing: the function belongs to the application."""


Credentials: TypeAlias = Password | StaticToken | TokenSource


def credentials_from(auth: tuple[str, str] | None, token: str | TokenFunction | None) -> Credentials | None:
    """Return the credentials for the options `auth` and `token`; None for none.

    Raises:
        ConfigError: both are given, or one of them is wrong. The error shows nothing of them.
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
    """Whether a header can carry it unchanged; the empty text, which means no token, counts."""
    return isinstance(text, str) and text.isascii() and text.isprintable() and " " not in text
