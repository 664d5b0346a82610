"""Tests that etcdctl passes and etcd-aio does not, each with the reason; at most ten of a release.

Tests of 3.5 for commands that etcdctl itself has no more do not count as such.
"""

from typing import Final

_REFUSED: Final = "says at once that the member has ended the connection, where etcdctl asks until its time is up"
_NAMES_CALL: Final = "the error names the call before the words of the server, with which the test begins"
REMOVED: Final = "the command is etcdutl's now: etcdctl 3.6 and newer do not have it either"
_NEWEST: Final = {
    "TestCtlV3GetRevokedCRL": _REFUSED,
    "TestCtlV3GetRevokedCRLGRPCOnly": _REFUSED,
    "TestAuthAlarm": "the error names the call, and with it a word that the test looks for in a line of JSON",
    "TestRoleAdd_Error": "refuses an empty name itself, so the error has not the words of the server",
    "TestMemberRemove": "starts too late on a busy machine: the server refuses only while it is younger than 5 s",
}
_VERSION: Final = {"TestCtlV3Version": "names etcdctl 3.7, whose verbs and formats it has"}
_OLDEST: Final = {
    "TestCtlV3DefragOffline": REMOVED,
    "TestCtlV3Snapshot": REMOVED,
    "TestCtlV3SnapshotCorrupt": REMOVED,
    "TestCtlV3SnapshotStatusBeforeRestore": REMOVED,
    "TestCtlV3AuthSnapshot": REMOVED,
    "TestCtlV3AuthSnapshotJWT": REMOVED,
    "TestCtlV3AuthLeaseRevoke": "the error has other words for a call that was repeated",
    "TestCtlV3AuthRoleGet": _NAMES_CALL,
    "TestCtlV3AuthUserGet": _NAMES_CALL,
    "TestCtlV3AuthTxn": _NAMES_CALL,
    "TestCtlV3AuthTxnJWT": _NAMES_CALL,
    "TestCtlV3MemberAddForLearner": "has the words of newer releases: added as learner",
}
KNOWN: Final[dict[str, dict[str, str]]] = {"3.7": _NEWEST, "3.6": _NEWEST | _VERSION, "3.5": _OLDEST | _VERSION}
"""The reason by minor version and test."""

MAY_PASS: Final = frozenset({"TestMemberRemove"})
"""Those of them that etcd-aio passes where it has the machine for itself."""


def known(release: str) -> dict[str, str]:
    """The reasons for a minor version, by test."""
    return KNOWN[release]
