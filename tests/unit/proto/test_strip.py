"""proto/strip.py: which parts it takes out, which it leaves, and that the files of this checkout went through it."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

PROTO_DIR = Path(__file__).parents[3] / "proto"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("proto_strip", PROTO_DIR / "strip.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = load()

ANNOTATED = """\
syntax = "proto3";
package etcdserverpb;

import "etcd/api/mvccpb/kv.proto";

// for the gateway
import "google/api/annotations.proto";

option go_package = "somewhere";

option (a.swagger) = {
  key: "};{";
  inner: { value: {}; };
};

service KV {
  // Range reads.
  rpc Range(RangeRequest) returns (RangeResponse) {
      option (google.api.http) = {
        post: "/v3/kv/range"
        additional_bindings { body: "*" }
    };
  }

  rpc RangeStream(RangeRequest) returns (stream RangeResponse) {
  }
}

message RangeRequest {
  option (versionpb.etcd_version_msg) = "3.0";

  enum SortOrder {
    option (versionpb.etcd_version_enum) = "3.0";
    NONE = 0; // default, no sorting
    LAST = 1 [(versionpb.etcd_version_enum_value)="3.1"]; // the end
  }

  // the interval [key, range_end); an option of no weight
  bytes key = 1 [(versionpb.etcd_version_field)="3.1"];
  bytes old = 2 [deprecated = true];
  Options options = 3;
}
"""

STRIPPED = """\
syntax = "proto3";
package etcdserverpb;

import "kv.proto";

service KV {
  // Range reads.
  rpc Range(RangeRequest) returns (RangeResponse);

  rpc RangeStream(RangeRequest) returns (stream RangeResponse);
}

message RangeRequest {
  enum SortOrder {
    NONE = 0; // default, no sorting
    LAST = 1; // the end
  }

  // the interval [key, range_end); an option of no weight
  bytes key = 1;
  bytes old = 2 [deprecated = true];
  Options options = 3;
}
"""


def test_annotations_go_and_everything_else_stays() -> None:
    assert script.strip_annotations(ANNOTATED) == STRIPPED


def test_stripping_twice_is_stripping_once() -> None:
    assert script.strip_annotations(STRIPPED) == STRIPPED


def test_an_option_without_end_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not end"):
        script.strip_annotations('option (a.b) = { key: "};"')


def test_release_comes_from_the_module(tmp_path: Path) -> None:
    (tmp_path / "version").mkdir()
    version = tmp_path / "version" / "version.go"
    version.write_text('var (\n\tMinClusterVersion = "3.0.0"\n\tVersion           = "3.7.3"\n)\n')
    assert script.release_of(tmp_path) == "v3.7.3"
    version.write_text("package version\n")
    with pytest.raises(ValueError, match="has no Version"):
        script.release_of(tmp_path)


@pytest.mark.parametrize("name", sorted(script.SOURCES))
def test_files_of_this_checkout_are_stripped_and_name_their_release(name: str) -> None:
    text = (PROTO_DIR / name).read_text()
    assert re.match(r"// From etcd v3\.7\.\d+ \(", text)
    assert script.strip_annotations(text) == text
    imports = set(re.findall(r'^import "(.+)";', text, re.MULTILINE))
    assert imports <= set(script.KEPT_IMPORTS.values())
