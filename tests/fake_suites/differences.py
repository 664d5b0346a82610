"""The tests of other clients that pass on a real server and not on the fake, each with its reason."""

from collections.abc import Mapping
from typing import Final

_MEMBERS: Final = "the fake does not add and change members"
_NAMES: Final = "it wants the names that its own cluster has, and members of the fake are m1, m2 and m3"
_SERVICES: Final = "the fake does not have etcd's own services Lock and Election"
_PROGRESS: Final = "it wants progress within a second, a flag of etcd; the fake has the default, 10 minutes"
_TTL: Final = "it wants tokens of 2 seconds, a flag of etcd; the fake has the default, 5 minutes"

KNOWN: Final[Mapping[str, Mapping[str, str]]] = {
    "etcdctl": {
        "TestAuthMemberAdd": _MEMBERS,
        "TestMemberAdd/": _MEMBERS,
        "TestMemberRemove/": _MEMBERS,
    },
    "go-examples": {
        "ExampleCluster_memberAdd": _MEMBERS,
        "ExampleCluster_memberAddAsLearner": _MEMBERS,
        "ExampleCluster_memberUpdate": _MEMBERS,
        "ExampleWatcher_watchWithProgressNotify": _PROGRESS,
    },
    "rust": {
        "test_auth_refresh_token": _TTL,
        "test_auth_refresh_token_once_for_concurrent_calls": _TTL,
        "test_election": _SERVICES,
        "test_lock": _SERVICES,
    },
    "aetcd": {"test_cluster.test_member_list": _NAMES},
    "etcd3": {"TestEtcd3.test_member_list": _NAMES},
}
