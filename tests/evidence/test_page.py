"""The tables about evidence are made from results, and a broken rule shows in them."""

from typing import Any

from tests.evidence.page import claims, clients, faults, number, releases, sabotages

RUN: dict[str, Any] = {
    "release": "3.7.3",
    "seed": 1,
    "engine": "native",
    "loop": "uvloop",
    "auth": True,
    "tls": False,
    "faults": {"kill": 2, "cut": 1},
    "watches": 7,
    "resyncs": 1,
    "compactions": 2,
    "reconnects": 4,
    "pauses": 5,
    "counts": {"cached read": 5, "current read of a cache": 3},
    "operations": 12_345,
    "events": 100,
    "snapshots": 5,
    "told": {"applied": 40, "not applied": 2, "unknown": 1},
    "once": 3,
    "repeated": 0,
    "broken": [],
}
WRONG = {**RUN, "seed": 2, "release": "3.6.16", "engine": "gateway", "broken": ["twice in the log: put:v7"]}


def test_each_claim_has_what_it_was_tested_by_and_where_it_was_broken() -> None:
    head, rows, _ = claims({"runs": [RUN, WRONG], "sabotages": []})
    assert head == ("claim", "judge", "tested by", "broken in")
    found = {row[0]: row[2:] for row in rows}
    assert found["no write is in the log twice"] == ("80 writes", "1 reports")
    assert found["exactly-once writes are applied once, or never"] == ("6 writes", "0 reports")
    assert found["what was told as not applied is in no log"] == ("4 writes", "0 reports")
    assert found["true of the revision that they name: reads of a cache as it is"] == ("10 states", "0 reports")


def test_reports_are_summed_by_release() -> None:
    _, rows, _ = releases({"runs": [RUN, WRONG], "sabotages": []})
    assert rows == [
        ("3.6.16", "1", "12 345", "100", "3", "1"),
        ("3.7.3", "1", "12 345", "100", "3", "0"),
        ("all", "2", "24 690", "200", "6", "1"),
    ]


def test_reports_are_summed_by_client() -> None:
    _, rows, _ = clients({"runs": [RUN, WRONG], "sabotages": []})
    found = {row[0]: row[1:] for row in rows}
    assert found["engine `native`"] == ("1", "12 345")
    assert found["engine `grpclib`"] == ("0", "0")
    assert found["event loop of uvloop"] == ("2", "24 690")
    assert found["TLS"] == ("0", "0")


def test_faults_are_summed() -> None:
    _, rows, _ = faults({"runs": [RUN, WRONG], "sabotages": []})
    assert ("a member is killed, and started again", "4") in rows
    assert ("watches that met a compaction", "6") in rows


def test_a_sabotage_is_shown_with_the_rules_that_it_broke() -> None:
    found = {"what": "breaks", "by": ["watches", "twice in the log: put:v7"], "operations": 1500}
    early = {"what": "lies", "by": ["linearizability", "told as not applied, in a log: put:v1"], "operations": 900}
    why = {"why": "Broke watch guarantee unique; Broke watch guarantee reliable"}
    _, rows, _ = sabotages({"runs": [], "sabotages": [found | why, early | {"why": "Linearization illegal"}]})
    assert rows == [
        ("lies", "etcd: linearizability; log: told as not applied, in a log", "900"),
        ("breaks", "etcd: watches (unique, reliable); log: twice in the log", "1 500"),
    ]


def test_thousands_are_apart() -> None:
    assert [number(value) for value in (7, 1_000, 2_000_000)] == ["7", "1 000", "2 000 000"]
