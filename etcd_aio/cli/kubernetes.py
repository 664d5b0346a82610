"""Values of Kubernetes as text and as JSON, for `--decode kubernetes`."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from etcd_aio.errors import printable
from etcd_aio.kubernetes import StoredObject, decode_value

_CONTROLS: Final = re.compile("[\x7f-\x9f\u2028\u2029]")  # what JSON may have as it is, and a terminal obeys


def value_lines(value: bytes, *, value_only: bool) -> Iterator[str]:
    """The object for people: its title, what cannot be read, and its JSON; with `value_only` the JSON alone."""
    found = decode_value(value)
    if not value_only:
        if found.title:
            yield printable(found.title)
        yield from map(printable, found.problems)
    if found.object is not None or value_only:
        text = json.dumps(found.object, ensure_ascii=False, indent=2)
        yield _CONTROLS.sub(lambda one: f"\\u{ord(one[0]):04x}", text)


def problem_lines(key: str, value: bytes) -> Iterator[str]:
    """The problems of a value, for stderr."""
    return (f"{key}: {problem}" for problem in decode_value(value).problems)


def value_json(value: bytes) -> dict[str, Any]:
    """The object for programs."""
    found: StoredObject = decode_value(value)
    return {
        "encoding": found.encoding,
        "apiVersion": found.api_version,
        "kind": found.kind,
        "namespace": found.namespace,
        "name": found.name,
        "object": found.object,
        "problems": list(found.problems),
    }
