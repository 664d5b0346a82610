"""The fake beside real servers of every supported minor version: the same requests get the same answers.

`python -m tests.truth` runs the machines for longer.
"""

import asyncio
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

import pytest

from etcd_aio import methods, pb
from etcd_aio.errors.server_error_table import ROWS
from etcd_aio.fake.refusals import Reason
from etcd_aio.testing import find_etcd
from tests.support.differential import COMPACTED, NOW, Step
from tests.support.differential_auth import PASSWORD, CallOf
from tests.support.drawn_requests import BEGINNING
from tests.support.seeds import chosen
from tests.support.truth import KEYS_AND_LEASES, USERS, VERSIONS, WATCHES, Machine, Truth, found_versions


@pytest.fixture(scope="module")
def truth() -> Iterator[Truth]:
    versions = found_versions()
    if not versions:
        pytest.skip("needs the servers of `nox -s servers`")
    with asyncio.Runner() as runner, Truth(runner, versions) as truth:
        yield truth


@pytest.mark.parametrize(
    ("machine", "steps"),
    [
        pytest.param(KEYS_AND_LEASES, 1000, id="keys"),
        pytest.param(WATCHES, 600, id="watches"),
        pytest.param(USERS, 1000, id="users"),
    ],
)
def test_random_histories(machine: Machine, steps: int, truth: Truth, pytestconfig: pytest.Config) -> None:
    """The default tier plays the same histories in every run."""
    is_nightly = pytestconfig.getoption("tier") == "nightly"
    truth.run(machine, Random(chosen() if is_nightly else 1), 20_000 if is_nightly else steps)


def _range(**options: Any) -> Step:
    return Step(methods.RANGE, pb.RangeRequest(key=b"a", range_end=b"c", **options))


def _stream(**options: Any) -> Step:
    return Step(methods.RANGE_STREAM, pb.RangeRequest(key=b"\x00", range_end=b"\x00", **options))


def _puts(numbers: range, size: int) -> list[Step]:
    return [Step(methods.PUT, pb.PutRequest(key=b"k%02d" % number, value=bytes(size))) for number in numbers]


def _watch(**options: Any) -> Step:
    return Step(methods.WATCH, pb.WatchRequest(create_request=pb.WatchCreateRequest(**options)))


def _during(alarm: pb.AlarmType, *steps: Step) -> list[Step]:
    """Calls during an alarm, which is raised and ended twice."""
    activate, deactivate = (
        Step(methods.ALARM, pb.AlarmRequest(action=action, alarm=alarm))
        for action in (pb.AlarmRequestAlarmAction.ACTIVATE, pb.AlarmRequestAlarmAction.DEACTIVATE)
    )
    look = Step(methods.ALARM, pb.AlarmRequest(alarm=alarm))
    return [look, activate, activate, look, *steps, deactivate, deactivate, look]


_BY_REVISION: Final = pb.RangeRequestSortTarget.MOD
_PROGRESS: Final = Step(methods.WATCH, pb.WatchRequest(progress_request=pb.WatchProgressRequest()))
_FROM_A_TO_B: Final = pb.Permission(perm_type=pb.PermissionType.READWRITE, key=b"a", range_end=b"b")
_C: Final = pb.Permission(perm_type=pb.PermissionType.READ, key=b"c")
_USER: Final = (
    Step(methods.USER_ADD, pb.AuthUserAddRequest(name="u1", password=PASSWORD)),
    Step(methods.ROLE_ADD, pb.AuthRoleAddRequest(name="r1")),
    Step(methods.ROLE_GRANT_PERMISSION, pb.AuthRoleGrantPermissionRequest(name="r1", perm=_FROM_A_TO_B)),
    Step(methods.USER_GRANT_ROLE, pb.AuthUserGrantRoleRequest(user="u1", role="r1")),
)
_PUT_OF_C: Final = pb.RequestOp(request_put=pb.PutRequest(key=b"c"))


_PUT_OF_A: Final = pb.RequestOp(request_put=pb.PutRequest(key=b"a"))
_LOOK: Final = pb.RequestOp(request_range=pb.RangeRequest(key=b"a"))


def _nested(op: pb.RequestOp) -> pb.TxnRequest:
    return pb.TxnRequest(success=[pb.RequestOp(request_txn=pb.TxnRequest(failure=[op]))])


def _by_all(*steps: Step) -> list[Step | CallOf]:
    """Calls of the user, of a caller without a token, of one with a wrong token, and of root."""
    return [*_USER, *(CallOf(user, step) for user in ("u1", "", "nobody", "root") for step in steps)]


@pytest.mark.parametrize(
    ("machine", "items"),
    [
        pytest.param(
            KEYS_AND_LEASES,
            [*BEGINNING, *(_range(limit=limit, sort_target=_BY_REVISION) for limit in (1, 2, 3))],
            id="without an order the limit comes before the sorting",
        ),
        pytest.param(
            KEYS_AND_LEASES,
            [*BEGINNING, *(_stream(limit=limit, sort_target=_BY_REVISION) for limit in (0, 1, 2, -1))],
            id="a stream counts what it has sent and what comes behind that",
        ),
        pytest.param(
            KEYS_AND_LEASES,
            [
                *_during(pb.AlarmType.CORRUPT, *BEGINNING),
                *_during(
                    pb.AlarmType.NOSPACE, *BEGINNING, *(Step(methods.TXN, _nested(op)) for op in (_PUT_OF_A, _LOOK))
                ),
            ],
            id="alarms",
        ),
        pytest.param(
            KEYS_AND_LEASES,
            [
                *_puts(range(24), 10),
                *(_stream(limit=limit) for limit in (0, 9, 10, 11, 23, 24)),
                *_puts(range(12), 320_000),
                *(_stream(), _stream(keys_only=True), _stream(count_only=True, limit=3), _stream(revision=NOW - 6)),
            ],
            id="the chunks of a stream",
        ),
        pytest.param(
            WATCHES,
            [
                *_puts(range(4), 900_000),
                *(
                    _watch(key=b"\x00", range_end=b"\x00", start_revision=NOW - 3, fragment=one)
                    for one in (True, False)
                ),
            ],
            id="the fragments of a large delivery",
        ),
        pytest.param(
            WATCHES,
            [*BEGINNING, _watch(key=b"a", start_revision=NOW + 100), _PROGRESS],
            id="progress of a watcher that has not begun",
        ),
        pytest.param(WATCHES, [*BEGINNING, _PROGRESS], id="progress of no watcher"),
        pytest.param(
            USERS,
            _by_all(
                _watch(key=b"a", range_end=b"\x00"),
                _watch(key=b"a", range_end=b"b"),
                _watch(key=b"c", range_end=b"b"),
                _watch(key=b"a", range_end=b"a"),
            ),
            id="watches of users",
        ),
        pytest.param(
            USERS,
            [
                *_USER,
                Step(methods.ROLE_GRANT_PERMISSION, pb.AuthRoleGrantPermissionRequest(name="r1", perm=_C)),
                CallOf("u1", _watch(key=b"c", range_end=b"a")),
                CallOf("u1", Step(methods.RANGE, pb.RangeRequest(key=b"c", range_end=b"a"))),
            ],
            id="intervals of users that end before they begin",
        ),
        pytest.param(
            USERS,
            _by_all(
                Step(methods.TXN, _nested(_PUT_OF_C)),
                Step(methods.TXN, pb.TxnRequest(failure=[_PUT_OF_C])),
            ),
            id="inner transactions of users",
        ),
        pytest.param(
            USERS,
            _by_all(
                Step(methods.AUTH_STATUS, pb.AuthStatusRequest()),
                Step(methods.ALARM, pb.AlarmRequest()),
                Step(methods.MEMBER_LIST, pb.MemberListRequest()),
                Step(methods.STATUS, pb.StatusRequest()),
                Step(methods.HASH, pb.HashRequest()),
                Step(methods.HASH_KV, pb.HashKvRequest()),
                Step(methods.DEFRAGMENT, pb.DefragmentRequest()),
                Step(methods.MOVE_LEADER, pb.MoveLeaderRequest(target_id=5)),
            ),
            id="maintenance by users",
        ),
    ],
)
def test_what_once_differed(machine: Machine, items: Sequence[Any], truth: Truth) -> None:
    truth.play(machine, items)


_LARGE: Final = bytes(2**21 - 2**18)
_REFUSED: Final = (
    Step(methods.PUT, pb.PutRequest()),
    Step(methods.PUT, pb.PutRequest(key=b"missing", ignore_value=True)),
    Step(methods.PUT, pb.PutRequest(key=b"a", value=b"1", ignore_value=True)),
    Step(methods.PUT, pb.PutRequest(key=b"a", lease=1, ignore_lease=True)),
    Step(methods.PUT, pb.PutRequest(key=b"a", lease=3)),
    Step(methods.PUT, pb.PutRequest(key=b"a", value=_LARGE)),
    Step(methods.TXN, pb.TxnRequest(success=[_LOOK] * 129)),
    Step(methods.TXN, pb.TxnRequest(success=[_PUT_OF_A] * 2)),
    _range(sort_order=pb.RangeRequestSortOrder(7)),
    Step(methods.COMPACT, pb.CompactionRequest(revision=NOW)),
    _range(revision=COMPACTED - 1),
    _range(revision=NOW + 1),
    _stream(sort_order=pb.RangeRequestSortOrder.DESCEND),
    _stream(min_mod_revision=1),
    Step(methods.LEASE_GRANT, pb.LeaseGrantRequest(id=1, ttl=1000)),
    Step(methods.LEASE_GRANT, pb.LeaseGrantRequest(id=3, ttl=9_000_000_001)),
    Step(methods.MOVE_LEADER, pb.MoveLeaderRequest(target_id=5)),
    *_during(pb.AlarmType.NOSPACE, Step(methods.PUT, pb.PutRequest(key=b"a"))),
    *_during(pb.AlarmType.CORRUPT, Step(methods.PUT, pb.PutRequest(key=b"a"))),
)
_REFUSED_TO_USERS: Final = (
    *_USER,
    Step(methods.AUTHENTICATE, pb.AuthenticateRequest(name="u1", password="wrong")),
    *(
        CallOf("root", step)
        for step in (
            _USER[0],
            _USER[1],
            Step(methods.USER_ADD, pb.AuthUserAddRequest()),
            Step(methods.ROLE_ADD, pb.AuthRoleAddRequest()),
            Step(methods.USER_GET, pb.AuthUserGetRequest(name="u9")),
            Step(methods.ROLE_GET, pb.AuthRoleGetRequest(role="r9")),
            Step(methods.AUTHENTICATE, pb.AuthenticateRequest(name="u1", password="wrong")),
            Step(methods.USER_ADD, pb.AuthUserAddRequest(name="u3", options=pb.UserAddOptions(no_password=True))),
            Step(methods.AUTHENTICATE, pb.AuthenticateRequest(name="u3", password="any")),
            Step(methods.ROLE_GRANT_PERMISSION, pb.AuthRoleGrantPermissionRequest(name="r1")),
            Step(methods.USER_REVOKE_ROLE, pb.AuthUserRevokeRoleRequest(name="u1", role="r9")),
            Step(methods.ROLE_REVOKE_PERMISSION, pb.AuthRoleRevokePermissionRequest(role="r1", key=b"z")),
            Step(methods.USER_DELETE, pb.AuthUserDeleteRequest(name="root")),
        )
    ),
    *(CallOf(user, Step(methods.PUT, pb.PutRequest(key=b"c"))) for user in ("u1", "", "nobody")),
)
_NEEDS_SEVERAL_MEMBERS: Final = {Reason.NO_LEADER, Reason.NOT_LEADER, Reason.TIMEOUT, Reason.PROPOSAL_DROPPED}


def test_every_refusal_of_the_fake_is_one_of_real_servers(truth: Truth) -> None:
    truth.play(KEYS_AND_LEASES, [*BEGINNING, *_REFUSED])
    truth.play(USERS, _REFUSED_TO_USERS)
    alone = {(reason.code.name, reason.text) for reason in Reason if reason not in _NEEDS_SEVERAL_MEMBERS}
    assert alone <= truth.refusals()
    # `test_every_error.py` has seen real servers give these.
    known = {(row.code, row.message) for row in ROWS}
    assert {(reason.code, reason.text) for reason in _NEEDS_SEVERAL_MEMBERS} <= known


def test_the_fake_is_compared_with_what_users_run() -> None:
    if "-" in find_etcd().version:
        pytest.skip(f"etcd {find_etcd().version} is a pre-release, which the fake does not follow")
    assert find_etcd().version.startswith(tuple(version.rpartition(".")[0] for version in VERSIONS))
