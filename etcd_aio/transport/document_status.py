"""Which HTTP statuses come with a document of etcd. Pure."""

from typing import Final

from etcd_aio.errors import ConnectError

_HEALTH_PATHS: Final = frozenset({"/health", "/livez", "/readyz"})
_OK: Final = 200
_UNHEALTHY: Final = 503


def check_document(path: str, status: int) -> None:
    """Check that an answer is the document that was requested.

    A member that is not healthy says so with 503, and why in the document.

    Args:
        path: what was requested, perhaps with a query.
        status: of HTTP; 0 if the answer has none.

    Raises:
        ConnectError: it is not the document.
    """
    name = path.partition("?")[0]
    if status != _OK and not (status == _UNHEALTHY and name in _HEALTH_PATHS):
        shown = f": HTTP status {status}" if status else " over HTTP"
        raise ConnectError(f"the peer does not serve {name}{shown}")
