"""Tests that etcdctl passes and etcd-aio does not, each with the reason; at most ten of a release."""

from typing import Final

_REFUSED: Final = "says at once that the member has ended the connection, where etcdctl asks until its time is up"
_OF_ALL: Final = {
    "TestCtlV3GetRevokedCRL": _REFUSED,
    "TestCtlV3GetRevokedCRLGRPCOnly": _REFUSED,
    "TestCtlV3Lock": "prints nothing if it is interrupted while it waits, where etcdctl prints 'context canceled'",
    "TestAuthAlarm": "the error names the call, and with it a word that the test looks for in a line of JSON",
    "TestRoleAdd_Error": "refuses an empty name itself, so the error has not the words of the server",
}
_OF_OLDER: Final = _OF_ALL | {"TestCtlV3Version": "names etcdctl 3.7, whose verbs and formats it has"}
KNOWN: Final[dict[str, dict[str, str]]] = {"3.7": _OF_ALL, "3.6": _OF_OLDER, "3.5": _OF_OLDER}
"""The reason by minor version and test."""


def known(release: str) -> dict[str, str]:
    """The reasons for a minor version, by test."""
    return KNOWN[release]
