"""The errors of etcd3gw."""


class Etcd3Exception(Exception):
    """Base of every error of a call. Its text is the reason that belongs to a status of HTTP.

    Attributes:
        detail_text: the error as JSON, as etcd's gateway writes it; else its text.
    """

    def __init__(self, detail_text: str | None = None, *args: object) -> None:
        super().__init__(*args)
        self.detail_text = detail_text


class WatchTimedOut(Etcd3Exception):
    """No event came in time."""


class InternalServerError(Etcd3Exception):
    """The server had an error of its own."""


class ConnectionFailedError(Etcd3Exception):
    """The server cannot be reached, or cannot serve now."""


class ConnectionTimeoutError(Etcd3Exception):
    """No answer came in time."""


class PreconditionFailedError(Etcd3Exception):
    """Never raised: for a failed precondition, etcd's gateway answers with the status of a bad request."""


class ApiVersionDiscoveryFailedError(Etcd3Exception):
    """Never raised: the version of the gateway does not matter here."""
