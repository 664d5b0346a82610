"""cli/txn_grammar.py, cli/txn.py: the language of txn."""

from typing import Any

import pytest

from etcd_aio import Compare, Key, op
from etcd_aio.cli.outcome import Failure
from etcd_aio.cli.txn import operation_of
from etcd_aio.cli.txn_grammar import condition_of


@pytest.mark.parametrize(
    ("line", "condition"),
    [
        (b'version("a") = "1"', Key("a").version == 1),
        (b'ver("a")  >  "1"', Key("a").version > 1),
        (b'c("a") != "0"', Key("a").create_revision != 0),
        (b'create("a") < "5"', Key("a").create_revision < 5),
        (b'm("a\\x00b") = "7"', Key(b"a\0b").mod_revision == 7),
        (b'val("a") = "x \\"y"', Key("a").value == 'x "y'),
        (b'value(")") > ""', Key(")").value > ""),
        (b'lease("a") = "32698e5d5d8a0710"', Key("a").lease == 0x32698E5D5D8A0710),
        (b'lease("a") != "10"', Key("a").lease != 16),
    ],
)
def test_a_condition(line: bytes, condition: Compare) -> None:
    assert condition_of(line) == condition


@pytest.mark.parametrize(
    "line",
    [
        b"rubbish",
        b'size("a") = "1"',
        b'mod("a") >= "1"',
        b'mod("a") = "x"',
        b'mod("a") = 1',
        b'mod("") = "1"',
        b'mod("a") = "1_0"',
        b'mod("a") = " 1"',
        b'mod("a") = "ff"',
        b'lease("a") = "0xff"',
        b"",
    ],
)
def test_a_malformed_condition_has_exit_code_3(line: bytes) -> None:
    with pytest.raises(Failure) as caught:
        condition_of(line)
    assert caught.value.code == 3


@pytest.mark.parametrize(
    ("line", "operation"),
    [
        (b'put "x y" "a b"', op.put("x y", "a b")),
        (b"put a 1 --lease=ff --prev-kv", op.put("a", "1", lease=255, prev_kv=True)),
        (b"put -- a -1", op.put("a", "-1")),
        (b"get a b --rev=3 --keys-only=true", op.range("a", range_end="b", revision=3, keys_only=True)),
        (b"get '' --prefix --limit 2", op.range(all_keys=True, limit=2)),
        (b"del a --prefix=false --prefix", op.delete(prefix="a")),
    ],
)
def test_an_operation(line: bytes, operation: Any) -> None:
    assert operation_of(line) == operation


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"get", b"lease a", b"get a --wrong", b'put "\\q" 1', b"get a --limit=x", b"get a --help"),
        *(b"get a -w json", b"get a --hex", b"put a 1 --endpoints=x", b"del a --context x"),
    ],
)
def test_a_malformed_operation_has_exit_code_3(line: bytes) -> None:
    with pytest.raises(Failure) as caught:
        operation_of(line)
    assert caught.value.code == 3
