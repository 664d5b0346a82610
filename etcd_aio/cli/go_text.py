r"""Text as Go writes and reads it: quoted strings, words of a line, numbers, sizes. Pure.

Keys and values are bytes. Text that is printed has them as UTF-8 with the error handler `surrogateescape`, so that the
terminal gets exactly these bytes.
"""

import re
from collections.abc import Iterator
from typing import Final

_NAMED: Final = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}
_BY_NAME: Final = {name: code for code, name in _NAMED.items()}
_WORD: Final = re.compile(rb"""\"(?:[^"\\]|\\.)*"|'[^']*'|[^'"\s]\S*""")
_ESCAPE: Final = re.compile(
    rb"""\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|([abtnvfr"\\]))|([^\\"]+)"""
)
_DIGITS: Final = {10: re.compile(r"[+-]?[0-9]+"), 16: re.compile(r"[+-]?[0-9a-fA-F]+")}
_LITERAL: Final = re.compile(
    r"([+-]?)(?:0[xX](?P<x>(?:_?[0-9a-fA-F])+)|0[bB](?P<b>(?:_?[01])+)|0[oO]?(?P<o>(?:_?[0-7])+)|(?P<d>0|[1-9](?:_?[0-9])*))"
)
_BASES: Final = {"x": 16, "b": 2, "o": 8, "d": 10}
_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def as_text(raw: bytes) -> str:
    """Bytes as they are printed."""
    return raw.decode("utf-8", "surrogateescape")


def quoted(raw: bytes | str) -> str:
    """A string in double quotes, as Go's `%q` writes it."""
    text = as_text(raw) if isinstance(raw, bytes) else raw
    return '"' + "".join(map(_quoted_rune, text)) + '"'


def _quoted_rune(rune: str) -> str:
    code = ord(rune)
    if code in _NAMED:
        return "\\" + _NAMED[code]
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if rune.isprintable():
        return rune
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def unquoted(raw: bytes) -> bytes:
    r"""The string that a Go literal in double quotes stands for: `"a\x00\u00e4\101"`.

    Raises:
        ValueError: the text is not such a literal.
    """
    if len(raw) < 2 or raw[:1] != b'"' or raw[-1:] != b'"':
        raise ValueError("no quoted string")
    return b"".join(_pieces(raw[1:-1]))


def _pieces(body: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        found = _ESCAPE.match(body, at)
        if found is None:
            raise ValueError("an escape that Go does not have")
        at = found.end()
        byte, short, long, octal, name, plain = found.groups()
        if plain is not None:
            yield plain
        elif name is not None:
            yield bytes((_BY_NAME[name.decode()],))
        elif byte is not None or octal is not None:
            yield bytes((int(byte, 16) if byte is not None else int(octal, 8),))
        else:
            yield chr(int(short or long, 16)).encode()


def words_of(line: bytes) -> list[bytes]:
    """The words of a line: separated by spaces, or in single quotes, or in double quotes as in Go.

    Raises:
        ValueError: a word in double quotes has an escape that Go does not have.
    """
    return [_word(found) for found in _WORD.findall(line)]


def _word(raw: bytes) -> bytes:
    if raw[:1] == b"'":
        return raw[1:-1]
    return unquoted(raw) if raw[:1] == b'"' else raw


def whole_number(text: str, base: int) -> int:
    """A number of 64 bits as Go's `ParseInt` reads it: digits only, which Python's `int` is not as strict about.

    Args:
        text: the number.
        base: 10 or 16; 0 for literals of Go, such as 0x1f and 1_000, as the values of flags are.

    Raises:
        ValueError: the text is not such a number.
    """
    if base:
        number = int(text, base) if _DIGITS[base].fullmatch(text) else None
    else:
        found = _LITERAL.fullmatch(text)
        number = None if found is None else _literal(found)
    if number is None or not -(2**63) <= number < 2**63:
        raise ValueError(f"no number: {text!r}")
    return number


def _literal(found: "re.Match[str]") -> int:
    name = found.lastgroup or "d"
    return int(found[1] + found[name].replace("_", ""), _BASES[name])


def hex_bytes(raw: bytes) -> str:
    r"""Every byte as `\x61`, as etcdctl's `--hex` shows keys and values."""
    return "".join(f"\\x{byte:02x}" for byte in raw)


def size(number: int) -> str:
    """A number of bytes for people, as etcdctl prints it: `25 kB`, `2.1 GB`."""
    if number < 10:
        return f"{number} B"
    value, unit = float(number), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    value = int(value * 10 + 0.5) / 10
    return f"{value:.1f} {_UNITS[unit]}" if value < 10 else f"{value:.0f} {_UNITS[unit]}"
