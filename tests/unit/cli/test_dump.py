"""cli/dump.py, cli/dump_format.py, cli/dump_tree.py: a dump goes in again, and a part is refused."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.cli.dump_format import DumpedKey, DumpHead, DumpWriter, MalformedDumpError, check, read_keys
from etcd_aio.cli.dump_tree import DumpTree
from tests.support.tiers import nightly_examples

KEYS = st.dictionaries(st.binary(min_size=1, max_size=5), st.binary(max_size=5), max_size=8)


def lines_of(content: dict[bytes, bytes], prefix: bytes = b"") -> list[bytes]:
    writer = DumpWriter(DumpHead(7, prefix, "c"))
    keys = (DumpedKey(prefix + key, content[key], number + 1) for number, key in enumerate(sorted(content)))
    return [writer.begin(), *map(writer.key, keys), writer.end()]


# The form.


@nightly_examples(500, default=25)
@given(KEYS, st.binary(max_size=3))
def test_keys_and_values_of_any_bytes_come_back(content: dict[bytes, bytes], prefix: bytes) -> None:
    lines = lines_of(content, prefix)
    head = check(lines)
    assert head == DumpHead(7, prefix, "c")
    assert {one.key[len(prefix) :]: one.value for one in read_keys(lines[1:], head)} == content


@nightly_examples(500, default=25)
@given(KEYS.filter(bool), st.data())
def test_every_part_of_a_dump_is_refused(content: dict[bytes, bytes], data: st.DataObject) -> None:
    whole = b"".join(lines_of(content))
    cut = data.draw(st.integers(0, len(whole) - 2))
    with pytest.raises(MalformedDumpError):
        check(whole[:cut].splitlines(keepends=True))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda lines: [*lines[:1], lines[2], lines[1], lines[3]], "not in order"),
        (lambda lines: [*lines[:2], lines[3]], "another number"),
        (lambda lines: [*lines, lines[1]], "after the end"),
        (lambda lines: [lines[0], lines[1].replace(b"one", b"two"), *lines[2:]], "digest"),
        (lambda lines: [lines[0].replace(b'dump":1', b'dump":2'), *lines[1:]], "newer"),
        (lambda lines: [lines[0].replace(b'prefix":""', b'prefix":"b"'), *lines[1:]], "below the prefix"),
        (lambda lines: [lines[0], b'{"key":1,"value":""}\n'], "line 2"),
        (lambda lines: [b"[]"], "line 1"),
    ],
)
def test_a_damaged_dump_is_refused(change: Callable[[list[bytes]], list[bytes]], text: str) -> None:
    with pytest.raises(MalformedDumpError, match=text):
        check(change(lines_of({b"a": b"one", b"b": b"other"})))


@nightly_examples(500, default=25)
@given(st.dictionaries(st.text("ab/", min_size=1, max_size=5), st.text(max_size=2), max_size=8))
def test_a_tree_has_every_key_at_its_place(content: dict[str, str]) -> None:
    pairs = [(key.encode(), content[key].encode()) for key in sorted(content)]

    def unfolded(node: object, path: str = "") -> dict[str, str]:
        if isinstance(node, str):
            return {path: node}
        assert isinstance(node, dict)
        found: dict[str, str] = {}
        for name, below in node.items():
            found |= unfolded(below, path + name)
        return found

    tree = DumpTree()
    pieces = [tree.add(*pair) for pair in pairs]
    assert unfolded(json.loads("".join([*pieces, tree.end()]))) == content
