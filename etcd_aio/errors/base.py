"""The root of the exception tree, and every error that this side raises by itself.

Knows: what each error carries. Never knows: etcd's error table (`server.py`) or how a status becomes one of these
(`translate.py`).

    EtcdError
    ├─ ConfigError(ValueError)            the client was built wrongly
    ├─ InvalidRequestError(ValueError)    a call was refused before anything was sent: UnknownEndpointError
    ├─ ClientUsageError(RuntimeError)     ClientClosedError, WrongLoopError, ForkedError
    ├─ TransportError(ConnectionError)    ConnectError, TLSError, ConnectionLostError, NoAvailableEndpointsError,
    │                                     ClusterChangedError, MalformedReplyError, ReplyTooLargeError
    ├─ EtcdTimeoutError(TimeoutError)     the call's deadline passed
    ├─ TokenUnavailableError              the user's own function gave no token
    ├─ DiscoveryError                     where the members are could not be learnt
    ├─ OldClusterError                    a member is older than what this client supports
    ├─ SnapshotChecksumError              a snapshot is cut short or damaged
    ├─ StoreRolledBackError               the store is behind what a watch was told: a backup was restored
    ├─ LeaseLostError                     a lease that was held is gone: LeaseExpiredError
    └─ ServerError                        etcd answered with an error: see server.py
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from etcd_aio.errors.delivery import Delivery
from etcd_aio.errors.status import StatusCode
from etcd_aio.errors.text import shown_seconds

if TYPE_CHECKING:
    from etcd_aio.errors.attempt import Attempt

_NO_TIME = 0.001  # seconds; less is not worth a word where nothing was sent


class EtcdError(Exception):
    """The root of every error this library raises.

    `str(error)` is one line for logs: which call failed, on what, why, where, after how long, and whether it may have
    been applied. It shows keys and names, and never values, passwords or tokens. `message` is the reason alone.

    Attributes:
        code: the gRPC status behind the error, or None if there was none.
        message: what went wrong, and nothing else: etcd's own text where etcd answered.
        call: the call that failed and what it was about, such as `put 'greeting'`; empty where no call was made.
        detail: what of the call `message` is about, such as a size or a user; empty if there is nothing to add.
        endpoint: the endpoint that answered or failed last; empty if none was reached.
        seconds: how long the call took with all its attempts; 0 where no call was made.
        attempts: every failed attempt of the call, oldest first. The notes (`__notes__`) show them.
        maybe_applied: True if the server may have carried out the mutation, now or later. False is a promise that it
            has not and will not (for a mutation), or that it does not matter (for a read). It is about this one call,
            with all its attempts: a loop of your own that repeats a call has to remember if any round said True.
        retryable: whether the same call may well succeed later without any change by the caller. Such errors pass;
            the others come again.
    """

    default_code: StatusCode | None = None
    default_message: str = ""
    retryable: bool = False

    def __init__(self, message: str = "", *, code: StatusCode | None = None) -> None:
        self.message = message or self.default_message
        super().__init__(self.message)
        self.code = self.default_code if code is None else code
        self.call = ""
        self.detail = ""
        self.endpoint = ""
        self.seconds = 0.0
        self.attempts: tuple[Attempt, ...] = ()
        self.maybe_applied = False

    def __str__(self) -> str:
        text = f"{self.call}: {self._reason()}" if self.call else self._reason()
        outcome = "it may have been applied" if self.maybe_applied else ""
        facts = "; ".join(filter(None, (self._circumstances(), outcome)))
        return f"{text} ({facts})" if facts else text

    def _reason(self) -> str:
        """Why it failed."""
        return f"{self.message}: {self.detail}" if self.detail else self.message

    def _circumstances(self) -> str:
        """Where and after how long, unless the reason says it."""
        if not self.attempts:
            return f"after {shown_seconds(self.seconds)}" if self.seconds >= _NO_TIME else ""
        tries = f" and {len(self.attempts)} attempts" if len(self.attempts) > 1 else ""
        return f"at {self.endpoint} after {shown_seconds(self.seconds)}{tries}"


class ConfigError(EtcdError, ValueError):
    """The client was configured in a way that cannot work. Raised before anything touches the network."""


class InvalidRequestError(EtcdError, ValueError):
    """A call was refused before anything was sent, since its arguments cannot be right."""

    default_code = StatusCode.INVALID_ARGUMENT


class UnknownEndpointError(InvalidRequestError):
    """A call names an endpoint, or needs one, that the client does not use: see `client.endpoints`."""


class ClientUsageError(EtcdError, RuntimeError):
    """The client was used where or when it cannot work."""


class ClientClosedError(ClientUsageError):
    """The client is closed, or was closed while the call was under way."""

    default_message = "the client is closed"


class WrongLoopError(ClientUsageError):
    """The client belongs to another event loop than the one that called it."""

    default_message = "the client belongs to another event loop: create one client in each loop"


class ForkedError(ClientUsageError):
    """The client was created before a fork and is used in the child process."""

    default_message = "the client was created before os.fork(): create a new one in the child process"


class TransportError(EtcdError, ConnectionError):
    """No gRPC answer came back."""

    default_code = StatusCode.UNAVAILABLE
    retryable = True


class ConnectError(TransportError):
    """An endpoint could not be connected to. The `__cause__` is the real reason."""


class TLSError(ConnectError):
    """The TLS handshake failed, or did not settle on HTTP/2."""


class ConnectionLostError(TransportError):
    """The connection ended, or fell silent, while the call was under way."""


class MalformedReplyError(TransportError):
    """The peer's bytes are not what gRPC or etcd would send."""

    default_code = StatusCode.INTERNAL
    retryable = False


class ReplyTooLargeError(TransportError):
    """A reply is larger than the client's `max_receive_bytes`, so it was not taken.

    Attributes:
        watch_id: on the stream of watches, the server's id of the one that it was for; None if that is not known.
    """

    default_code = StatusCode.RESOURCE_EXHAUSTED
    retryable = False
    watch_id: int | None = None


class ClusterChangedError(TransportError):
    """An endpoint answered for another cluster than the one this client talks to (`cluster_id` differs)."""

    default_code = StatusCode.FAILED_PRECONDITION
    retryable = False


class NoAvailableEndpointsError(TransportError):
    """No endpoint could be connected to before the call's deadline, so nothing was sent.

    Attributes:
        errors: for every endpoint its last real error.
    """

    default_message = "no endpoint is available"

    def _circumstances(self) -> str:
        # The reason names every endpoint.
        return f"after {shown_seconds(self.seconds)}" if self.seconds >= _NO_TIME else ""

    def __init__(self, message: str = "", *, errors: Mapping[str, BaseException] | None = None) -> None:
        self.errors: Mapping[str, BaseException] = MappingProxyType(dict(errors or {}))
        causes = "; ".join(f"{endpoint}: {_describe(error)}" for endpoint, error in self.errors.items())
        text = message or self.default_message
        super().__init__(f"{text}: {causes}" if causes else text)

    def __reduce__(self) -> tuple[object, ...]:
        # MappingProxyType does not pickle, and the message already holds the causes.
        state = {name: value for name, value in self.__dict__.items() if name != "errors"}
        return (_rebuild_no_available_endpoints, (dict(self.errors), state))


class EtcdTimeoutError(EtcdError, TimeoutError):
    """The call's deadline passed. For a mutation, `maybe_applied` says whether it may have got through."""

    default_code = StatusCode.DEADLINE_EXCEEDED
    default_message = "the call's deadline passed"
    retryable = True

    def _reason(self) -> str:
        if not self.attempts or self.message != self.default_message:
            return super()._reason()
        last, within = self.attempts[-1], f"within {shown_seconds(self.seconds)}"
        match last.delivery:
            case Delivery.UNKNOWN:
                return f"no answer from {last.endpoint} {within}"
            case Delivery.UNSENT:
                return f"not sent to {last.endpoint} {within}"
            case _:
                return f"no success {within}; {last.endpoint} answered last: {last.message}"

    def _circumstances(self) -> str:
        if not self.attempts or self.message != self.default_message:
            return super()._circumstances()
        return f"{len(self.attempts)} attempts" if len(self.attempts) > 1 else ""


class TokenUnavailableError(EtcdError):
    """The function that was given as `token=` gave no token. The `__cause__` is what it raised."""

    default_code = StatusCode.UNAUTHENTICATED
    default_message = "token= gave no token"


class DiscoveryError(EtcdError):
    """Where the members are could not be learnt, or cannot be believed. The endpoints in use stay as they are."""

    retryable = True


class OldClusterError(EtcdError):
    """A member runs a release that is older than what this client supports."""

    default_code = StatusCode.FAILED_PRECONDITION


class SnapshotChecksumError(EtcdError):
    """A snapshot came to its end, and is not what the member sent: its SHA-256 is missing or another. Take it again."""

    default_message = "the snapshot is cut short or damaged: its checksum does not fit"
    retryable = True


class StoreRolledBackError(EtcdError):
    """The store is behind what it had shown to this watch: a backup was restored, or the data was wiped.

    What the watch delivered may never have happened in the store as it is now. Read the keys again.

    Attributes:
        revision: the store's revision now.
        seen: the highest revision that it had shown.
    """

    default_code = StatusCode.DATA_LOSS
    default_message = "the store went back to an earlier revision: a backup was restored, or data was wiped"

    def __init__(self, message: str = "", *, code: StatusCode | None = None, revision: int = 0, seen: int = 0) -> None:
        if seen and not message:
            message = (
                f"the store went back from revision {seen} to {revision}: a backup was restored, or data was wiped"
            )
        super().__init__(message, code=code)
        self.revision = revision
        self.seen = seen


class LeaseLostError(EtcdError):
    """A lease that was held here is lost, or nothing keeps it alive any longer. The `__cause__` is the real reason."""

    default_message = "the lease was lost"


class LeaseExpiredError(LeaseLostError):
    """The lease is over: its time has passed without a renewal being acknowledged, or etcd does not have it any more.

    In the first case the `__cause__`, if there is one, is what kept the renewals from being answered. In the second it
    is `LeaseNotFoundError`: it has expired, or somebody has revoked it.
    """

    default_message = "the lease has expired"


def _describe(error: BaseException) -> str:
    text = error.message if isinstance(error, EtcdError) else str(error)  # the rest stands around it already
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _rebuild_no_available_endpoints(
    errors: dict[str, BaseException], state: dict[str, object]
) -> NoAvailableEndpointsError:
    error = NoAvailableEndpointsError(errors=errors)
    error.__dict__.update(state)
    error.args = (error.message,)
    return error
