"""`EtcdError` with the history of its call, and every error that the client itself raises.

EtcdError
├─ ConfigError(ValueError)            the client was configured wrongly
├─ InvalidRequestError(ValueError)    a call was rejected before anything was sent: UnknownEndpointError
├─ ClientUsageError(RuntimeError)     ClientClosedError, WrongLoopError, ForkedError, BlockingInLoopError
├─ TransportError(ConnectionError)    ConnectError, TLSError, ConnectionLostError, NoAvailableEndpointsError,
│                                     ClusterChangedError, MalformedReplyError, ReplyTooLargeError, ProxyError
├─ EtcdTimeoutError(TimeoutError)     the call's deadline passed
├─ TokenUnavailableError              the caller's `token=` function failed
├─ DiscoveryError                     the members could not be discovered
├─ OldClusterError                    a member is older than what this client supports
├─ SnapshotChecksumError              a snapshot is cut short or damaged
├─ DatabaseFileError                  of files that are read without a server: see offline.py
├─ StoreRolledBackError               the store went back: a backup was restored
├─ LeaseLostError                     a held lease is lost: LeaseExpiredError
├─ LockError, ElectionError           of locks and elections: see concurrency.py
├─ OutcomeUnknownError, ResultLostError   of exactly-once writes: see once.py
├─ CacheError                         of reads from memory: see cache.py
├─ MirrorError                        of mirrors: see mirror.py
├─ NamingError                        of service registration and discovery: see naming.py
└─ ServerError                        etcd answered with an error: see families.py
"""

import re
from collections.abc import Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Final, TypeVar

from etcd_aio.errors.attempt import Attempt, Delivery, StatusCode, printable, shown_seconds

_MAX_NOTES: Final = 10  # a traceback with more lines than this hides its own first line
_MOST_CAUSES: Final = 5  # that an error names; a cluster seldom has more members
_NUMBER: Final = re.compile(r"\d+")
_NO_TIME: Final = 0.001  # seconds; shorter times are not shown


class EtcdError(Exception):
    """Base class for all errors of this library.

    `str(error)` is one line for logs: which call failed, on what, why, where, after how long, and whether it may have
    been applied. It contains keys and names, and never values, passwords or tokens. `message` is only the reason.

    Attributes:
        code: the gRPC status behind the error, or None if there was none.
        message: the reason: etcd's own text if etcd answered.
        call: the failed call and its main argument, such as `put 'greeting'`; empty if no call was made.
        detail: a detail that belongs to `message`, such as a size or a user; empty if there is none.
        endpoint: the endpoint that answered or failed last; empty if none was reached.
        seconds: duration of the call with all its attempts; 0 if no call was made.
        attempts: every failed attempt of the call, oldest first. The notes (`__notes__`) list them.
        maybe_applied: True if the server may have applied the write, or may still apply it. False means that it has not
            and will not; for a read it is always False. This covers one call with all its attempts: code that repeats a
            call must remember whether any round ended with True.
        retryable: whether the same call may succeed later without any change by the caller.
    """

    default_code: StatusCode | None = None
    default_message: str = ""
    retryable: bool = False

    def __init__(self, message: str = "", *, code: StatusCode | None = None) -> None:
        self.message = printable(message) or self.default_message  # a part of it may come from the network
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
        """The reason, with its detail."""
        return f"{self.message}: {self.detail}" if self.detail else self.message

    def _circumstances(self) -> str:
        """Endpoint and duration, unless the reason contains them."""
        if not self.attempts:
            return f"after {shown_seconds(self.seconds)}" if self.seconds >= _NO_TIME else ""
        tries = f" and {len(self.attempts)} attempts" if len(self.attempts) > 1 else ""
        return f"at {self.endpoint} after {shown_seconds(self.seconds)}{tries}"


class ConfigError(EtcdError, ValueError):
    """The client's configuration is invalid. Raised before any network access."""


class InvalidRequestError(EtcdError, ValueError):
    """The arguments of a call are invalid. Nothing was sent."""

    default_code = StatusCode.INVALID_ARGUMENT


class UnknownEndpointError(InvalidRequestError):
    """A call names or needs an endpoint that the client does not use: see `client.endpoints`."""


class ClientUsageError(EtcdError, RuntimeError):
    """The client is closed, or was used from the wrong event loop or process."""


class ClientClosedError(ClientUsageError):
    """The client is closed, or was closed during the call."""

    default_message = "the client is closed"


class WrongLoopError(ClientUsageError):
    """The client was used from another event loop than its own."""

    default_message = "the client belongs to another event loop: create one client in each loop"


class BlockingInLoopError(ClientUsageError):
    """A blocking call was made in a thread whose event loop it would have stopped."""

    default_message = (
        "an event loop runs in this thread, and a blocking call would stop it: use etcd_aio.Client there, or make the"
        " client with allow_in_loop=True"
    )


class ForkedError(ClientUsageError):
    """The client was created before a fork and used in the child process."""

    default_message = "the client was created before os.fork(): create a new one in the child process"


class TransportError(EtcdError, ConnectionError):
    """No gRPC answer was received."""

    default_code = StatusCode.UNAVAILABLE
    retryable = True


class ConnectError(TransportError):
    """Connecting to an endpoint failed. The `__cause__` is the underlying error.

    Attributes:
        lacks_http2: whether the peer, or a proxy before it, has proved that it speaks HTTP/1 and no HTTP/2, so that
            `engine="gateway"` may work.
    """

    lacks_http2: bool = False


class TLSError(ConnectError):
    """The TLS handshake failed, or did not negotiate HTTP/2."""


class ProxyError(ConnectError):
    """The proxy does not open a connection to the endpoint, or does not work. The text names both."""


class ProxyAuthenticationError(ProxyError):
    """The proxy refused the name and password, or wants them and got none."""

    retryable = False


class ConnectionLostError(TransportError):
    """The connection broke, or stopped responding, during the call."""


class MalformedReplyError(TransportError):
    """The reply is not valid gRPC, or not a valid etcd message."""

    default_code = StatusCode.INTERNAL
    retryable = False


class ReplyTooLargeError(TransportError):
    """A reply is larger than the client's `max_receive_bytes` and was discarded.

    Attributes:
        watch_id: on a watch stream, the server's id of the watch that the reply was for; None if unknown.
    """

    default_code = StatusCode.RESOURCE_EXHAUSTED
    retryable = False
    watch_id: int | None = None


class ClusterChangedError(TransportError):
    """An endpoint belongs to another cluster than the client's: its `cluster_id` differs."""

    default_code = StatusCode.FAILED_PRECONDITION
    retryable = False


class NoAvailableEndpointsError(TransportError):
    """No endpoint could be connected to before the call's deadline.

    Nothing was sent, unless `maybe_applied` is True: by an earlier attempt of the same call.

    Attributes:
        errors: the last connection error of every endpoint.
    """

    default_message = "no endpoint is available"

    def _circumstances(self) -> str:
        # The reason already names every endpoint.
        return f"after {shown_seconds(self.seconds)}" if self.seconds >= _NO_TIME else ""

    def __init__(self, message: str = "", *, errors: Mapping[str, BaseException] | None = None) -> None:
        self.errors: Mapping[str, BaseException] = MappingProxyType(dict(errors or {}))
        causes = _causes(self.errors)
        text = message or self.default_message
        super().__init__(f"{text}: {causes}" if causes else text)

    def __reduce__(self) -> tuple[object, ...]:
        # MappingProxyType cannot be pickled, and the message already contains the causes.
        state = {name: value for name, value in self.__dict__.items() if name != "errors"}
        return (_rebuild_no_available_endpoints, (dict(self.errors), state))


class EtcdTimeoutError(EtcdError, TimeoutError):
    """The call's deadline passed. For a write, `maybe_applied` says whether it may have been applied."""

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
    """The function passed as `token=` did not return a token. The `__cause__` is its exception."""

    default_code = StatusCode.UNAUTHENTICATED
    default_message = "token= gave no token"


class DiscoveryError(EtcdError):
    """Discovery of the members failed, or its result was rejected. The endpoints in use stay as they are."""

    retryable = True


class OldClusterError(EtcdError):
    """A member runs an etcd release older than those the client supports."""

    default_code = StatusCode.FAILED_PRECONDITION


class SnapshotChecksumError(EtcdError):
    """A snapshot is incomplete or damaged: its SHA-256 is missing or does not match. Take it again."""

    default_message = "the snapshot is cut short or damaged: its checksum does not fit"
    retryable = True


class StoreRolledBackError(EtcdError):
    """The store's revision is lower than one this watch has seen: a backup was restored, or data was wiped.

    The store may not contain the changes that the watch delivered. Read the keys again.

    Attributes:
        revision: the store's current revision.
        seen: the highest revision that the watch had seen.
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
    """A held lease is lost, or is no longer kept alive. The `__cause__` is the underlying error."""

    default_message = "the lease was lost"


class LeaseExpiredError(LeaseLostError):
    """The lease has expired or was revoked.

    If its TTL passed without an acknowledged renewal, the `__cause__` is the error that prevented the renewals, if
    there was one. If etcd no longer has the lease, the `__cause__` is `LeaseNotFoundError`.
    """

    default_message = "the lease has expired"


def _causes(errors: Mapping[str, BaseException]) -> str:
    """The endpoints and their errors. Of many endpoints, those whose errors differ in numbers only share one text."""
    if len(errors) <= _MOST_CAUSES:
        return "; ".join(f"{endpoint}: {_describe(error)}" for endpoint, error in errors.items())
    alike: dict[str, list[str]] = {}
    for endpoint, error in errors.items():
        alike.setdefault(_NUMBER.sub("", _describe(error)), []).append(endpoint)
    groups = sorted(alike.values(), key=len, reverse=True)[:_MOST_CAUSES]
    shown = [f"{_first_of(group)}: {_describe(errors[group[0]])}" for group in groups]
    rest = len(errors) - sum(map(len, groups))
    return "; ".join(shown) + (f"; and {rest} more" if rest else "")


def _first_of(endpoints: list[str]) -> str:
    return endpoints[0] if len(endpoints) == 1 else f"{endpoints[0]} and {len(endpoints) - 1} more"


def _describe(error: BaseException) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"  # what people and programs search for
    text = error.message if isinstance(error, EtcdError) else str(error)  # without the rest of its str()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _rebuild_no_available_endpoints(
    errors: dict[str, BaseException], state: dict[str, object]
) -> NoAvailableEndpointsError:
    error = NoAvailableEndpointsError(errors=errors)
    error.__dict__.update(state)
    error.args = (error.message,)
    return error


E = TypeVar("E", bound=EtcdError)


def with_history(error: E, attempts: tuple[Attempt, ...], *, maybe_applied: bool, seconds: float = 0.0) -> E:
    """Add the history of its call to an error that is about to be raised, also as notes. Returns the error.

    Args:
        error: the error.
        attempts: the failed attempts, oldest first.
        maybe_applied: whether the server may have applied the call, now or later.
        seconds: duration of the call.
    """
    error.attempts = attempts
    error.maybe_applied = maybe_applied
    error.seconds = seconds
    if attempts:
        error.endpoint = attempts[-1].endpoint
    notes = _notes(attempts)
    skipped = len(notes) - _MAX_NOTES
    if skipped > 0:
        error.add_note(f"({skipped} earlier lines left out)")
    for note in notes[-_MAX_NOTES:]:
        error.add_note(note)
    return error


def _notes(attempts: tuple[Attempt, ...]) -> list[str]:
    """One line for each attempt. Consecutive attempts with the same result share one."""
    notes = []
    first = 1
    for _, group in groupby(attempts, key=lambda attempt: (attempt.code, attempt.delivery, attempt.message)):
        alike = tuple(group)
        notes.append(_note(first, alike))
        first += len(alike)
    return notes


def _note(first: int, alike: tuple[Attempt, ...]) -> str:
    attempt = alike[0]
    if len(alike) == 1:
        return f"attempt {first} on {attempt}"
    *others, last = sorted({attempt.endpoint or "no endpoint" for attempt in alike})
    where = f"{', '.join(others)} and {last}" if others else last
    shortest, longest = (shown_seconds(pick(attempt.seconds for attempt in alike)) for pick in (min, max))
    took = longest if shortest == longest else f"{shortest} to {longest}"
    return (
        f"attempts {first} to {first + len(alike) - 1} on {where}: "
        f"{attempt.delivery.words} after {took}: {attempt.message} ({attempt.code.name})"
    )
