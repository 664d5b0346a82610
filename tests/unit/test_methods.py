"""methods.py: no RPC of the .proto files is forgotten, and retries are those of the Go client."""

import re
from pathlib import Path

import pytest

from etcd_aio import methods, pb
from etcd_aio.codec import message_class_of
from etcd_aio.methods import AnyMethod, Cardinality, Method
from etcd_aio.pb.message_pool import default_message_pool

PROTO_DIR = Path(__file__).parents[2] / "proto"
RPC = re.compile(r"rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);")

CARDINALITIES = {
    (False, False): Cardinality.UNARY,
    (False, True): Cardinality.SERVER_STREAMING,
    (True, True): Cardinality.BIDIRECTIONAL,
}

# What the official client repeats; Watch is not in its table but opens its stream again by itself.
REPEATABLE = {
    "KV/Range",
    "Watch/Watch",
    *("Lease/LeaseGrant", "Lease/LeaseRevoke", "Lease/LeaseKeepAlive", "Lease/LeaseTimeToLive", "Lease/LeaseLeases"),
    "Cluster/MemberList",
    *("Maintenance/Alarm", "Maintenance/Status", "Maintenance/Hash", "Maintenance/HashKV", "Maintenance/Snapshot"),
    "Maintenance/MoveLeader",
    *("Auth/UserGet", "Auth/UserList", "Auth/RoleGet", "Auth/RoleList"),
}

READS = {
    *("KV/Range", "KV/RangeStream"),
    "Watch/Watch",
    *("Lease/LeaseTimeToLive", "Lease/LeaseLeases"),
    "Cluster/MemberList",
    *("Maintenance/Status", "Maintenance/Hash", "Maintenance/HashKV", "Maintenance/Snapshot"),
    *("Auth/AuthStatus", "Auth/Authenticate", "Auth/UserGet", "Auth/UserList", "Auth/RoleGet", "Auth/RoleList"),
}


def rpcs_of(file: str) -> dict[str, tuple[type[pb.Message], type[pb.Message], Cardinality]]:
    """Every RPC of a .proto file by its path."""
    text = (PROTO_DIR / file).read_text()
    package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
    assert package
    rpcs = {}
    for service, body in re.findall(r"^service (\w+) \{(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        found = RPC.findall(body)
        assert len(found) == len(re.findall(r"^\s*rpc ", body, re.MULTILINE)), "an rpc that RPC does not match"
        for name, requests_stream, request, replies_stream, reply in found:
            rpcs[f"/{package[1]}.{service}/{name}"] = (
                message_class(f"{package[1]}.{request}"),
                message_class(f"{package[1]}.{reply}"),
                CARDINALITIES[bool(requests_stream), bool(replies_stream)],
            )
    return rpcs


def message_class(full_name: str) -> type[pb.Message]:
    found = default_message_pool.url_to_type[f"type.googleapis.com/{full_name}"]
    assert issubclass(found, pb.Message)
    return found


def rows(table: tuple[AnyMethod, ...]) -> dict[str, tuple[type[pb.Message], type[pb.Message], Cardinality]]:
    return {row.path: (row.request, message_class_of(row.reply), row.cardinality) for row in table}


def constants() -> dict[str, AnyMethod]:
    return {name: value for name, value in vars(methods).items() if isinstance(value, Method)}


def test_every_rpc_of_etcd_has_its_row() -> None:
    assert rows(methods.ALL) == rpcs_of("rpc.proto")
    assert len(methods.ALL) == 42


def test_every_rpc_of_the_health_service_has_its_row() -> None:
    assert rows((methods.HEALTH_CHECK, methods.HEALTH_WATCH)) == rpcs_of("health.proto")


def test_all_stand_in_the_order_of_the_proto_file() -> None:
    assert [row.path for row in methods.ALL] == list(rpcs_of("rpc.proto"))


def test_every_constant_is_a_row_once_and_the_other_way_round() -> None:
    health = [methods.HEALTH_CHECK, methods.HEALTH_WATCH]
    assert sorted(row.path for row in constants().values()) == sorted(row.path for row in [*methods.ALL, *health])


@pytest.mark.parametrize("row", methods.ALL, ids=lambda row: row.name)
def test_a_constant_is_named_like_its_rpc(row: AnyMethod) -> None:
    (constant,) = (name for name, value in constants().items() if value is row)
    assert constant.replace("_", "").lower() == row.name.partition("/")[2].lower()
    assert row.path == f"/etcdserverpb.{row.name}"


def test_repeatable_is_what_the_go_client_repeats() -> None:
    assert {row.name for row in methods.ALL if row.repeatable} == REPEATABLE


def test_mutations_are_all_but_the_reads() -> None:
    assert {row.name for row in methods.ALL if not row.is_mutation} == READS


def test_learners_serve_what_the_server_lets_them() -> None:
    assert [row for row in methods.ALL if row.served_by_learner] == [methods.RANGE, methods.STATUS, methods.SNAPSHOT]


def test_member_local_rpcs() -> None:
    local = [methods.STATUS, methods.DEFRAGMENT, methods.HASH, methods.HASH_KV]
    assert [row for row in methods.ALL if row.is_member_local] == local
    assert methods.HEALTH_CHECK.is_member_local
    assert methods.HEALTH_WATCH.is_member_local


def test_what_came_after_etcd_3_4() -> None:
    since = {row.name: row.since for row in (*methods.ALL, methods.HEALTH_CHECK, methods.HEALTH_WATCH) if row.since}
    assert since == {"KV/RangeStream": "3.7", "Auth/AuthStatus": "3.5", "Maintenance/Downgrade": "3.5"}


def test_a_row_is_an_immutable_value_with_a_short_repr() -> None:
    assert repr(methods.RANGE) == "<Method KV/Range>"
    assert {methods.RANGE: 1}[methods.RANGE] == 1
    with pytest.raises(AttributeError):
        methods.RANGE.repeatable = False
