"""Code generation: writes Python source, compiles it, and links the functions that call each other.

Tracebacks and debuggers show the generated source like any other.
"""

import builtins
import keyword
import linecache
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

from etcd_aio.codec.decodable import Function

_TAKEN: Final = frozenset(dir(builtins)) | frozenset(keyword.kwlist)


class Source:
    """Python source that is being written."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str) -> None:
        """Add one line."""
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, text: str) -> Iterator[None]:
        """Add a line that ends in a colon. Lines added inside the `with` block are indented under it."""
        self.line(text)
        self._depth += 1
        yield
        self._depth -= 1

    def __str__(self) -> str:
        return "\n".join(self._lines) + "\n"

    def compile(self, title: str, namespace: dict[str, Any]) -> None:
        """Run the source in `namespace`. Tracebacks show its lines under the file name <etcd_aio `title`>."""
        text = str(self)
        filename = f"<etcd_aio {title}>"
        exec(compile(text, filename, "exec"), namespace)  # noqa: S102 - generated from this package's own classes
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)


def local_name(field: str, reserved: frozenset[str]) -> str:
    """The variable for a field: its own name, with an underscore if that is taken."""
    return f"{field}_" if field in reserved or field in _TAKEN else field


class GeneratedFunction(Protocol):
    """A function to generate."""

    @property
    def name(self) -> str:
        """Its name, which is unique."""
        ...

    def source(self) -> Source:
        """The source that defines it."""
        ...

    def namespace(self) -> dict[str, object]:
        """The names its source refers to, except other generated functions."""
        ...

    def callees(self) -> "Iterable[GeneratedFunction]":
        """The generated functions that it calls; calls may be recursive."""
        ...


# A function is added together with all that it calls, so that no thread ever sees a part of them. Two threads may
# compile the same function at the same time; either result will do.
_functions: Final[dict[str, Function]] = {}


def function_of(generated: GeneratedFunction) -> Function:
    """The compiled function; it and all that it calls are compiled at the first request."""
    function = _functions.get(generated.name)
    if function is None:
        fresh: dict[str, Function] = {}
        function = _compile(generated, fresh)
        _functions.update(fresh)
    return function


def _compile(generated: GeneratedFunction, fresh: dict[str, Function]) -> Function:
    known = _functions.get(generated.name) or fresh.get(generated.name)
    if known is not None:
        return known
    namespace = generated.namespace()
    generated.source().compile(generated.name, namespace)
    function: Any = namespace[generated.name]
    fresh[generated.name] = function  # before the functions it calls, which may call it
    for callee in generated.callees():
        namespace[callee.name] = _compile(callee, fresh)
    return function  # type: ignore[no-any-return] # see Function
