"""http2/errors.py: errors of the engine: whom they blame, and what the peer is told."""

from etcd_aio.http2 import ErrorCode, LocalProtocolError, RemoteProtocolError


def test_the_peers_error_has_a_code_for_goaway_and_a_text() -> None:
    error = RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "a frame on stream 2")
    assert (error.code, str(error)) == (ErrorCode.PROTOCOL_ERROR, "a frame on stream 2")


def test_nobody_catches_one_for_the_other() -> None:
    assert not issubclass(LocalProtocolError, RemoteProtocolError)
    assert not issubclass(RemoteProtocolError, LocalProtocolError)
