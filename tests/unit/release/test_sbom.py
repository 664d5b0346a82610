"""release/sbom.py: the bill of materials in the wheel."""

import json

from release.sbom import current, make_sbom

PROJECT = {
    "name": "etcd-aio",
    "description": "A client",
    "license": "Apache-2.0",
    "dependencies": ["grpclib>=0.4.9,<0.5", "Some_Thing>=1"],
    "optional-dependencies": {"uvloop": ["uvloop>=0.21; sys_platform != 'win32'"]},
}
TAKEN = (
    "// From etcd v3.7.3 (mvccpb/kv.proto of go.etcd.io/etcd/api/v3). Copyright The etcd Authors, Apache License 2.0.\n"
)
PROTOS = {"kv.proto": TAKEN, "own.proto": "// Written here.\n"}


def test_it_has_what_the_package_contains_and_needs() -> None:
    found = json.loads(make_sbom(PROJECT, "0.2.0", PROTOS))
    own = found["metadata"]["component"]
    assert (own["purl"], own["licenses"]) == ("pkg:pypi/etcd-aio@0.2.0", [{"license": {"id": "Apache-2.0"}}])
    assert [each["purl"] for each in own["components"]] == ["pkg:golang/go.etcd.io/etcd/api/v3@v3.7.3"]
    assert [(each["name"], each["scope"], each["properties"][0]["value"]) for each in found["components"]] == [
        ("grpclib", "required", ">=0.4.9,<0.5"),
        ("some-thing", "required", ">=1"),
        ("uvloop", "optional", ">=0.21"),
    ]
    assert found["components"][2]["properties"][1:] == [
        {"name": "etcd_aio:marker", "value": "sys_platform != 'win32'"},
        {"name": "etcd_aio:extra", "value": "uvloop"},
    ]
    assert found["dependencies"][0]["dependsOn"] == ["pkg:pypi/grpclib", "pkg:pypi/some-thing"]


def test_equal_sources_give_equal_bytes_and_another_version_another_serial_number() -> None:
    first, again = (make_sbom(PROJECT, "0.2.0", dict(order)) for order in (PROTOS.items(), [*PROTOS.items()][::-1]))
    assert first == again
    other = make_sbom(PROJECT, "0.2.1", PROTOS)
    assert json.loads(first)["serialNumber"] != json.loads(other)["serialNumber"]


def test_that_of_this_checkout_names_the_messages_of_etcd_and_the_dependencies() -> None:
    found = json.loads(current())
    assert [each["name"] for each in found["metadata"]["component"]["components"]] == ["go.etcd.io/etcd/api/v3"]
    assert {"grpclib", "betterproto2", "anyio"} <= {each["name"] for each in found["components"]}
