"""The language of `txn`: lines of conditions and operations. Pure.

mod("key1") > "0"           targets: version/ver, create/c, mod/m, value/val, and lease with an id in
                            hexadecimal; operators: = != < >
put key1 "some value"       operations: get, put and del with their flags
"""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from etcd_aio import Compare, Key
from etcd_aio.cli.go_text import as_text, unquoted, whole_number
from etcd_aio.cli.outcome import ExitCode, Failure

_STRING: Final = rb'"(?:[^"\\]|\\.)*"'
_CONDITION: Final = re.compile(rb"(\w*)\((" + _STRING + rb")\)\s*(\S+)\s*(" + _STRING + rb")")
_OPERATORS: Final[Mapping[bytes, Callable[[Any, Any], Any]]] = {
    b"=": operator.eq,
    b"!=": operator.ne,
    b"<": operator.lt,
    b">": operator.gt,
}
_TARGETS: Final[Mapping[bytes, str]] = {
    b"ver": "version",
    b"version": "version",
    b"c": "create_revision",
    b"create": "create_revision",
    b"m": "mod_revision",
    b"mod": "mod_revision",
    b"val": "value",
    b"value": "value",
    b"lease": "lease",
}


def condition_of(line: bytes) -> Compare:
    """The condition of a line.

    Raises:
        Failure: the line is malformed.
    """
    found = _CONDITION.match(line)
    if found is None or found[1] not in _TARGETS:
        raise _malformed(line)
    target = _TARGETS[found[1]]
    try:
        key, operand = unquoted(found[2]), unquoted(found[4])
        base = 16 if target == "lease" else 10  # the ids of leases are hexadecimal wherever they are shown
        compared = operand if target == "value" else whole_number(as_text(operand), base)
        made: Compare = _OPERATORS[found[3]](getattr(Key(key), target), compared)
    except (ValueError, KeyError):
        raise _malformed(line) from None
    return made


def _malformed(line: bytes) -> Failure:
    return Failure(ExitCode.INVALID_INPUT, f"malformed comparison: {as_text(line)}")
