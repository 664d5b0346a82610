"""The output formats: each is a function from a result to text, which is None if etcdctl has no such output. Pure."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from etcd_aio.cli.results import Shown
    from etcd_aio.cli.style import Style

Format: TypeAlias = "Callable[[Shown, Style], str | None]"

FORMATS: Final[Mapping[str, str]] = {
    "simple": "simple",
    "fields": "fields",
    "json": "as_json",
    "pretty-json": "pretty",
    "table": "table",
    "protobuf": "protobuf",
}
"""The functions by the words of `--write-out`; the module of each has the first part of the word in its name."""


def format_of(word: str) -> Format:
    """The format of a word, which is imported: most commands use none but the first."""
    module = import_module(f"etcd_aio.cli.format_{word.partition('-')[0]}")
    found: Format = getattr(module, FORMATS[word])
    return found
