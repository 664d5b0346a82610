"""Words of a command as keys, numbers and ids."""

import os
import re
from typing import Final

from etcd_aio.cli.go_text import whole_number
from etcd_aio.cli.outcome import ExitCode, Failure, bad_arguments

_HEX: Final = re.compile("[0-9a-fA-F]+")


def raw(word: str) -> bytes:
    """The bytes of a word, as the shell has passed them."""
    return os.fsencode(word)


def whole(word: str, what: str, code: int = ExitCode.BAD_ARGUMENTS) -> int:
    """A decimal number.

    Raises:
        Failure: the word is not a number, or does not fit 64 bits.
    """
    return _number(word, 10, what, code)


def lease_of(word: str) -> int:
    """The id of a lease, in hexadecimal.

    Raises:
        Failure: the word is not such an id.
    """
    return _number(word, 16, "bad lease ID arg, expecting ID in Hex", ExitCode.BAD_ARGUMENTS)


def member_of(word: str) -> int:
    """The id of a member, in hexadecimal.

    Raises:
        Failure: the word is not such an id.
    """
    number = int(word, 16) if _HEX.fullmatch(word) else -1
    if not 0 <= number < 2**64:
        raise bad_arguments(f"bad member ID arg {word!r}, expecting ID in Hex")
    return number


def _number(word: str, base: int, what: str, code: int) -> int:
    try:
        return whole_number(word, base)
    except ValueError:
        raise Failure(code, f"{what}: {word!r}") from None


def exactly(words: tuple[str, ...], count: int, text: str) -> tuple[str, ...]:
    """The words, checked.

    Raises:
        Failure: they are more or fewer.
    """
    if len(words) != count:
        raise bad_arguments(text)
    return words


def only_word(words: tuple[str, ...], text: str) -> str:
    """The only word.

    Raises:
        Failure: there is none, or there are more.
    """
    return exactly(words, 1, text)[0]


def only_file(words: tuple[str, ...], text: str, code: int = ExitCode.ERROR) -> str:
    """The only word, which is the name of a file; `code` is the exit code if it cannot be one.

    Raises:
        Failure: there is none, there are more, or it cannot be that of a file.
    """
    name = only_word(words, text)
    if not name:
        raise Failure(code, "the filename is empty")
    if name.endswith("/"):
        raise Failure(code, f"{name} is the name of a directory")
    return name
