"""Request metadata: the API version, `hasleader` and the token of every request.

The two tuples are made again when the token changes and never otherwise, so that a request takes one as it is, and the
engine recognises it by its identity.
"""

from typing import Final

from etcd_aio.transport.interface import Metadata

_TOKEN: Final = "token"  # noqa: S105 - the name of a field


class Token(str):
    """A token that does not show itself: tracebacks with local variables repeat the metadata of requests."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<token>"


class CallHeader(tuple[str, str]):
    """A pair of metadata that belongs to one call, so that it must not enter a header compression table."""

    __slots__ = ()


class RequestMetadata:
    """The metadata of all requests of a client.

    Args:
        api_version: the release whose API this client speaks.
        require_leader: whether requests that need a leader say so.

    Attributes:
        plain: of requests that any member may serve.
        with_leader: of those that need a leader.
    """

    __slots__ = ("_plain", "_with_leader", "plain", "with_leader")

    def __init__(self, api_version: str, *, require_leader: bool) -> None:
        self.plain: Metadata = (("client-api-version", api_version),)
        self.with_leader: Metadata = (*self.plain, ("hasleader", "true")) if require_leader else self.plain
        self._plain, self._with_leader = self.plain, self.with_leader  # without a token

    def without_token(self) -> "RequestMetadata":
        """A copy that carries no token."""
        found = RequestMetadata.__new__(RequestMetadata)
        found.plain = found._plain = self._plain
        found.with_leader = found._with_leader = self._with_leader
        return found

    def carry(self, token: str) -> None:
        """Every request from now on carries this token; the empty one is none."""
        pair: Metadata = ((_TOKEN, Token(token)),) if token else ()
        self.plain = (*self._plain, *pair)
        self.with_leader = (*self._with_leader, *pair)


def with_headers(metadata: Metadata, headers: Metadata) -> Metadata:
    """The metadata of one call, with headers of its own."""
    return (*metadata, *map(CallHeader, headers)) if headers else metadata


def token_of(metadata: Metadata) -> str:
    """The token that a request carries; empty for none."""
    return next((value for name, value in metadata if name == _TOKEN), "")
