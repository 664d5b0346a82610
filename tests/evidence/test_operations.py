"""Operations, results and events in the words of etcd's model; what it has no word for is refused."""

import pytest

from etcd_aio import DeleteResult, Event, EventType, Header, Key, KeyValue, PutResult, RangeResult, TxnResult, op
from tests.evidence import model
from tests.evidence.operations import UnknownToTheModelError, answer_of, lone_range, mark_of, request_of

KV = KeyValue(b"1", b"v", create_revision=2, mod_revision=3, version=2)


def test_the_keys_of_a_namespace_are_whole_again() -> None:
    read = op.range("0", range_end=":", limit=3, revision=9)
    options = {"Start": "key0", "End": "key:", "Limit": 3, "KeysOnly": False}
    assert request_of(read, "key") == {"Type": "range", "Range": {**options, "Revision": 9}}
    answer = answer_of(read, RangeResult(Header(revision=9), (KV,), count=4), "key")
    shown = {"Key": "key1", "Value": {"Value": "v"}, "ModRevision": 3, "Version": 2}
    assert answer == {"Range": {"KVs": [shown], "Count": 4}, "Revision": 9}


def test_a_txn_with_both_branches() -> None:
    txn = op.txn(
        when=[Key("a").mod_revision == 4, Key("b").version == 2, Key("c").missing],
        then=[op.put("a", "x"), op.delete("b")],
        otherwise=[op.range("a")],
    )
    assert request_of(txn)["Txn"] == {
        "Conditions": [model.unchanged("a", 4), model.of_version("b", 2), model.unchanged("c", 0)],
        "OperationsOnSuccess": [model.put("a", "x"), model.delete("b")],
        "OperationsOnFailure": [model.look(model.options("a"))],
    }
    header = Header(revision=5)
    done = TxnResult(True, header, (PutResult(header), DeleteResult(header, deleted=1)), txn.then)
    assert answer_of(txn, done) == model.txn_answer([model.result(), model.result(1)], 5)
    refused = TxnResult(False, header, (RangeResult(header, (KV,), count=1),), txn.otherwise)
    assert answer_of(txn, refused)["Txn"]["Failure"] is True


def test_a_long_value_is_known_by_its_hash() -> None:
    assert model.value_or_hash("v" * 19) == {"Value": "v" * 19}
    assert model.value_or_hash("") == {}
    assert model.value_or_hash("a" * 20) == {"Hash": model.fnv32a(b"a" * 20)}
    assert model.fnv32a(b"") == 0x811C9DC5
    assert model.fnv32a(b"foobar") == 0xBF9CF968


def test_writes_have_marks() -> None:
    assert mark_of(op.put("k", "v7")) == "put:v7"
    assert mark_of(op.delete("k")) is None
    assert mark_of(op.delete("k", range_end=lone_range("k", "d8"))) == "delete:d8"
    assert request_of(op.delete("k", range_end=lone_range("k", "d8"))) == model.txn([model.delete("k")])
    assert mark_of(op.txn(then=[op.delete("k"), op.put("l", "v9")])) == "put:v9"
    assert mark_of(op.range("k")) is None


@pytest.mark.parametrize(
    "operation",
    [
        op.delete(prefix="k"),
        op.put("k", ignore_value=True),
        op.txn(when=[Key("k").value == "v"], then=[op.put("k", "w")]),
        op.txn(when=[Key("k").mod_revision > 3], then=[op.put("k", "w")]),
        op.txn(then=[op.txn(then=[op.put("k", "w")])]),
    ],
    ids=["range deleted", "value ignored", "value compared", "greater", "nested"],
)
def test_what_the_model_does_not_know_is_refused(operation: object) -> None:
    with pytest.raises(UnknownToTheModelError):
        request_of(operation)


def test_events_tell_creations_and_previous_values() -> None:
    created = Event(EventType.PUT, KeyValue(b"1", b"v", create_revision=3, mod_revision=3, version=1))
    changed = Event(EventType.PUT, KeyValue(b"1", b"w", create_revision=3, mod_revision=4, version=2), created.kv)
    deleted = Event(EventType.DELETE, KeyValue(b"1", mod_revision=5))
    shown = [model.watch_event(event, prefix="key") for event in (created, changed, deleted)]
    assert [event["IsCreate"] for event in shown] == [True, False, False]
    assert shown[1]["PrevValue"] == {"Value": {"Value": "v"}, "ModRevision": 3, "Version": 1}
    assert (shown[2]["Key"], shown[2]["Value"], "PrevValue" in shown[2]) == ("key1", {}, False)
