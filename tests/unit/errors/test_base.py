"""errors/base.py: the root of the tree and this side's own errors: builtins, notes, pickling."""

import copy
import pickle
from types import MappingProxyType

import pytest

from etcd_aio.errors import (
    Attempt,
    ClientClosedError,
    ClientUsageError,
    ClusterChangedError,
    ConfigError,
    ConnectError,
    ConnectionLostError,
    Delivery,
    DiscoveryError,
    EtcdError,
    EtcdTimeoutError,
    ForkedError,
    InvalidRequestError,
    LeaseExpiredError,
    LeaseLostError,
    MalformedReplyError,
    NoAvailableEndpointsError,
    OldClusterError,
    ProxyAuthenticationError,
    ProxyError,
    ReplyTooLargeError,
    SnapshotChecksumError,
    StatusCode,
    StoreRolledBackError,
    TLSError,
    TokenUnavailableError,
    TransportError,
    UnknownEndpointError,
    WrongLoopError,
    with_history,
)

OWN = (
    *(ConfigError, InvalidRequestError, ClientUsageError, ClientClosedError, WrongLoopError, ForkedError),
    *(TransportError, ConnectError, TLSError, ConnectionLostError, MalformedReplyError, ReplyTooLargeError),
    *(ClusterChangedError, NoAvailableEndpointsError, EtcdTimeoutError),
    *(LeaseLostError, LeaseExpiredError, SnapshotChecksumError, UnknownEndpointError, TokenUnavailableError),
    *(DiscoveryError, OldClusterError, StoreRolledBackError, ProxyError, ProxyAuthenticationError),
)


def attempts(count: int) -> tuple[Attempt, ...]:
    return tuple(
        Attempt(f"m{number}:2379", StatusCode.UNAVAILABLE, Delivery.UNKNOWN, 0.001 * number, "gone")
        for number in range(1, count + 1)
    )


@pytest.mark.parametrize(
    ("error", "parents"),
    [
        (ConfigError, (ValueError,)),
        (InvalidRequestError, (ValueError,)),
        (UnknownEndpointError, (InvalidRequestError, ValueError)),
        (ClientClosedError, (ClientUsageError, RuntimeError)),
        (WrongLoopError, (ClientUsageError, RuntimeError)),
        (ForkedError, (ClientUsageError, RuntimeError)),
        (ConnectError, (TransportError, ConnectionError)),
        (TLSError, (ConnectError,)),
        (ProxyError, (ConnectError,)),
        (ProxyAuthenticationError, (ProxyError,)),
        (ConnectionLostError, (TransportError,)),
        (MalformedReplyError, (TransportError,)),
        (ReplyTooLargeError, (TransportError,)),
        (ClusterChangedError, (TransportError,)),
        (NoAvailableEndpointsError, (TransportError,)),
        (EtcdTimeoutError, (TimeoutError,)),
        (LeaseExpiredError, (LeaseLostError,)),
    ],
)
def test_the_isinstance_relations(error: type[EtcdError], parents: tuple[type[Exception], ...]) -> None:
    for parent in (*parents, EtcdError):
        with pytest.raises(parent):
            raise error


def test_only_what_may_pass_by_itself_is_retryable() -> None:
    assert {error for error in OWN if error.retryable} == {
        *(TransportError, ConnectError, TLSError, ConnectionLostError, NoAvailableEndpointsError, EtcdTimeoutError),
        *(SnapshotChecksumError, DiscoveryError, ProxyError),
    }


def test_a_new_error_has_its_defaults_and_no_history() -> None:
    error = EtcdTimeoutError()
    assert str(error) == error.message == "the call's deadline passed"
    assert error.code is StatusCode.DEADLINE_EXCEEDED
    assert (error.endpoint, error.attempts, error.maybe_applied) == ("", (), False)
    assert not hasattr(error, "__notes__")


def test_a_given_message_and_code_go_before_the_defaults() -> None:
    error = ConnectionLostError("reset", code=StatusCode.CANCELLED)
    assert str(error) == "reset"
    assert error.code is StatusCode.CANCELLED
    # OK is the number 0, and a code all the same.
    assert EtcdTimeoutError(code=StatusCode.OK).code is StatusCode.OK


def told(error: EtcdError, count: int = 1, *, maybe_applied: bool = False) -> str:
    """What the error of a put says after so many attempts."""
    error.call = "put 'k'"
    return str(with_history(error, attempts(count), maybe_applied=maybe_applied, seconds=2.0))


def test_an_error_tells_the_call_the_reason_the_place_the_time_and_the_outcome() -> None:
    error = ConnectionLostError("reset")
    assert told(error) == "put 'k': reset (at m1:2379 after 2 s)"
    assert told(error, 3, maybe_applied=True) == (
        "put 'k': reset (at m3:2379 after 2 s and 3 attempts; it may have been applied)"
    )
    error.detail = "3 bytes"
    assert told(error) == "put 'k': reset: 3 bytes (at m1:2379 after 2 s)"
    assert error.message == "reset"


def test_a_timeout_tells_who_gave_no_answer_and_how_long_it_had() -> None:
    assert told(EtcdTimeoutError()) == "put 'k': no answer from m1:2379 within 2 s"
    assert told(EtcdTimeoutError(), 2, maybe_applied=True) == (
        "put 'k': no answer from m2:2379 within 2 s (2 attempts; it may have been applied)"
    )


@pytest.mark.parametrize(
    ("delivery", "says"),
    [
        (Delivery.UNSENT, "put 'k': not sent to m1:2379 within 2 s"),
        (Delivery.UNPROCESSED, "put 'k': no success within 2 s; m1:2379 answered last: no leader"),
        (Delivery.ANSWERED, "put 'k': no success within 2 s; m1:2379 answered last: no leader"),
    ],
)
def test_a_timeout_does_not_claim_silence_where_something_else_was_last(delivery: Delivery, says: str) -> None:
    error = EtcdTimeoutError()
    error.call = "put 'k'"
    attempt = Attempt("m1:2379", StatusCode.UNAVAILABLE, delivery, 0.1, "no leader")
    assert str(with_history(error, (attempt,), maybe_applied=False, seconds=2.0)) == says


def test_a_timeout_with_a_text_of_its_own_keeps_it() -> None:
    assert told(EtcdTimeoutError("no leader was found in time")) == (
        "put 'k': no leader was found in time (at m1:2379 after 2 s)"
    )


def test_where_nothing_was_sent_only_the_time_is_told() -> None:
    error = with_history(EtcdTimeoutError(), (), maybe_applied=False, seconds=2.0)
    assert str(error) == "the call's deadline passed (after 2 s)"
    error = with_history(EtcdTimeoutError(), (), maybe_applied=False, seconds=0.0)
    assert str(error) == "the call's deadline passed"


@pytest.mark.parametrize("kind", OWN)
def test_every_error_survives_pickling_and_copying(kind: type[EtcdError]) -> None:
    error = with_history(kind("went wrong"), attempts(12), maybe_applied=True, seconds=2.0)
    error.call, error.detail = "put 'k'", "a detail"
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is kind
        assert twin.message == "went wrong"
        assert str(twin) == str(error)
        assert str(twin).startswith("put 'k': went wrong: a detail (")
        assert vars(twin) == vars(error)
        assert twin.__notes__ == error.__notes__


def test_no_available_endpoints_names_every_endpoint_and_its_cause() -> None:
    error = NoAvailableEndpointsError(errors={"m1:2379": OSError("refused"), "m2:2379": TimeoutError()})
    assert str(error) == "no endpoint is available: m1:2379: OSError: refused; m2:2379: TimeoutError"
    assert list(error.errors) == ["m1:2379", "m2:2379"]
    assert error.code is StatusCode.UNAVAILABLE


def test_no_available_endpoints_is_short_for_many_endpoints() -> None:
    refused = {f"http://10.0.0.{n}:2379": OSError(111, f"Connect call failed ('10.0.0.{n}', 2379)") for n in range(40)}
    others: dict[str, BaseException] = {f"https://m{n}:2379": ConnectError("x" * (n + 1)) for n in range(10)}
    error = NoAvailableEndpointsError(errors=refused | others)
    text = str(error)
    assert "http://10.0.0.0:2379 and 39 more: connection refused" in text
    assert "https://m0:2379: ConnectError: x; " in text
    assert text.endswith("; and 6 more")
    assert len(text) < 500
    assert len(error.errors) == 50


@pytest.mark.parametrize("kind", [EtcdError, ConnectError, ConfigError, NoAvailableEndpointsError, EtcdTimeoutError])
def test_an_error_is_one_line_without_control_characters(kind: type[EtcdError]) -> None:
    error = kind("one\n\x1b[31mtwo\0\u2028\x9b")
    assert str(error).isprintable()
    assert error.message == "one\\n\\x1b[31mtwo\\x00\\u2028\\x9b"
    assert error.args == (error.message,)


def test_no_available_endpoints_keeps_a_copy_that_cannot_be_changed() -> None:
    causes: dict[str, BaseException] = {"m1:2379": OSError("refused")}
    error = NoAvailableEndpointsError(errors=causes)
    causes.clear()
    assert list(error.errors) == ["m1:2379"]
    assert type(error.errors) is MappingProxyType


def test_no_available_endpoints_survives_pickling_with_its_causes() -> None:
    error = NoAvailableEndpointsError("none left", errors={"m1:2379": ConnectError("refused")})
    with_history(error, attempts(1), maybe_applied=False, seconds=2.0)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is NoAvailableEndpointsError
        assert str(twin) == str(error) == "none left: m1:2379: ConnectError: refused (after 2 s)"
        assert twin.args == error.args
        assert type(twin.errors["m1:2379"]) is ConnectError
        assert str(twin.errors["m1:2379"]) == "refused"
        assert twin.attempts == error.attempts
        assert twin.__notes__ == error.__notes__
        assert type(twin.errors) is MappingProxyType


def test_no_available_endpoints_without_causes_says_only_that() -> None:
    assert str(NoAvailableEndpointsError()) == "no endpoint is available"
    assert dict(NoAvailableEndpointsError().errors) == {}


def attempt(number: int, message: str = "gone", delivery: Delivery = Delivery.UNKNOWN) -> Attempt:
    return Attempt(f"m{number}:2379", StatusCode.UNAVAILABLE, delivery, 0.001 * number, message)


def test_history_is_kept_and_noted_oldest_first() -> None:
    error = EtcdTimeoutError()
    attempts = (attempt(1, "gone"), attempt(2, "refused", Delivery.UNSENT))
    assert with_history(error, attempts, maybe_applied=True, seconds=3.0) is error
    assert (error.attempts, error.endpoint, error.seconds) == (attempts, "m2:2379", 3.0)
    assert error.maybe_applied
    assert error.__notes__ == [
        "attempt 1 on m1:2379: no answer after 1 ms: gone (UNAVAILABLE)",
        "attempt 2 on m2:2379: not sent after 2 ms: refused (UNAVAILABLE)",
    ]


def test_history_without_attempts_leaves_the_endpoint_alone() -> None:
    error = ConnectError()
    error.endpoint = "m9:2379"
    with_history(error, (), maybe_applied=False)
    assert error.endpoint == "m9:2379"
    assert not hasattr(error, "__notes__")


def test_attempts_in_a_row_that_ended_alike_share_a_line() -> None:
    answered = Delivery.ANSWERED
    alike = [attempt(1 + number % 3, "etcdserver: no leader", answered) for number in range(18)]
    error = with_history(EtcdTimeoutError(), (*alike, attempt(1), attempt(1)), maybe_applied=False)
    assert error.__notes__ == [
        "attempts 1 to 18 on m1:2379, m2:2379 and m3:2379: "
        "answered after 1 ms to 3 ms: etcdserver: no leader (UNAVAILABLE)",
        "attempts 19 to 20 on m1:2379: no answer after 1 ms: gone (UNAVAILABLE)",
    ]


def test_only_attempts_that_ended_alike_share_a_line() -> None:
    one, two = attempt(1), attempt(1, delivery=Delivery.UNSENT)
    error = with_history(EtcdTimeoutError(), (one, two, one), maybe_applied=False)
    assert [note.split(":")[0] for note in error.__notes__] == [f"attempt {number} on m1" for number in (1, 2, 3)]


@pytest.mark.parametrize(("count", "left_out"), [(10, 0), (11, 1), (25, 15)])
def test_only_the_last_ten_lines_are_noted_and_the_rest_counted(count: int, left_out: int) -> None:
    attempts = tuple(attempt(number, f"message {number}") for number in range(1, count + 1))
    error = with_history(EtcdTimeoutError(), attempts, maybe_applied=False)
    assert error.attempts == attempts
    notes = list(error.__notes__)
    if left_out:
        assert notes.pop(0) == f"({left_out} earlier lines left out)"
    assert [note.split(":")[0] for note in notes] == [
        f"attempt {number} on m{number}" for number in range(left_out + 1, count + 1)
    ]
