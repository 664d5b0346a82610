r"""cli/go_text.py: text as Go writes and reads it; what is expected here was printed by Go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.cli.go_text import as_text, hex_bytes, quoted, size, unquoted, whole_number, words_of


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"", '""'),
        (b"a b", '"a b"'),
        (b'"\\', r'"\"\\"'),
        (b"\a\b\t\n\v\f\r", r'"\a\b\t\n\v\f\r"'),
        (b"\x00\x1f\x7f", r'"\x00\x1f\x7f"'),
        (b"\xff\xc3", r'"\xff\xc3"'),
        ("ä€".encode(), '"ä€"'),
        ("\u00ad\u200b".encode(), r'"\u00ad\u200b"'),
        ("\U000e0001".encode(), r'"\U000e0001"'),
    ],
)
def test_bytes_are_quoted_as_go_quotes_them(raw: bytes, shown: str) -> None:
    assert quoted(raw) == shown
    assert unquoted(shown.encode()) == raw


@given(st.binary())
def test_quoted_bytes_are_read_again(raw: bytes) -> None:
    assert unquoted(quoted(raw).encode()) == raw


@given(st.binary())
def test_printed_bytes_are_the_bytes(raw: bytes) -> None:
    assert as_text(raw).encode("utf-8", "surrogateescape") == raw


@pytest.mark.parametrize("text", [b"", b'"', b"a", rb'"\q"', rb'"\x1"', rb'"\400"', b'"\\"'])
def test_what_is_no_go_string_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        unquoted(text)


def test_octal_and_unicode_escapes_are_read() -> None:
    assert unquoted(rb'"\101\u00e4\U0001f600"') == "Aä😀".encode()


def test_a_line_has_words_in_both_kinds_of_quotes() -> None:
    assert words_of(rb"""put "x y" 'a "b"' --lease=12  c""") == [b"put", b"x y", b'a "b"', b"--lease=12", b"c"]


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 B"),
        (9, "9 B"),
        (10, "10 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (24576, "25 kB"),
        (9_949_999, "9.9 MB"),
        (2147483648, "2.1 GB"),
    ],
)
def test_sizes_are_those_of_etcdctl(number: int, shown: str) -> None:
    assert size(number) == shown


def test_hexadecimal_bytes() -> None:
    assert hex_bytes(b"a\xff") == r"\x61\xff"


@pytest.mark.parametrize(
    ("text", "base", "number"),
    [
        *(("12", 10, 12), ("-12", 10, -12), ("+012", 10, 12), ("fF", 16, 255), ("-1", 16, -1)),
        *(("0x1F", 0, 31), ("0b101", 0, 5), ("0o17", 0, 15), ("017", 0, 15), ("1_000", 0, 1000), ("0", 0, 0)),
        *(("0_7", 0, 7), ("0x_f", 0, 15), ("-0x8000000000000000", 0, -(2**63)), ("00", 0, 0)),
    ],
)
def test_numbers_are_those_of_go(text: str, base: int, number: int) -> None:
    assert whole_number(text, base) == number


@pytest.mark.parametrize(
    ("text", "base"),
    [
        *(("", 10), (" 1", 10), ("1 ", 10), ("1_0", 10), ("0x1", 10), ("1.0", 10), ("\u0661", 10), ("1\n", 10)),
        *(("0x12", 16), ("g", 16), ("1_2", 16), ("", 16), ("--1", 16)),
        *(("08", 0), ("1__0", 0), ("_1", 0), ("1_", 0), ("0x", 0), ("x", 0), ("", 0), ("9223372036854775808", 0)),
    ],
)
def test_what_go_reads_as_no_number_is_none(text: str, base: int) -> None:
    with pytest.raises(ValueError):
        whole_number(text, base)
