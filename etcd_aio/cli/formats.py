"""The output formats: each is a function from a result to text, which is None if etcdctl has no such output. Pure."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from etcd_aio.cli.format_fields import fields
from etcd_aio.cli.format_json import as_json
from etcd_aio.cli.format_pretty import pretty
from etcd_aio.cli.format_protobuf import protobuf
from etcd_aio.cli.format_simple import simple
from etcd_aio.cli.format_table import table
from etcd_aio.cli.results import Shown, Style

Format: TypeAlias = Callable[[Shown, Style], str | None]

FORMATS: Final[Mapping[str, Format]] = {
    "simple": simple,
    "fields": fields,
    "json": as_json,
    "pretty-json": pretty,
    "table": table,
    "protobuf": protobuf,
}
"""The formats by the words of `--write-out`."""
