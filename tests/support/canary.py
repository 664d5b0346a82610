"""The canary: a text in every secret of a test, which must not appear in logs, warnings, output and errors.

Logs, warnings and output are searched whole. Errors are found in two ways. Errors of the library are searched when they
are created and when a note is added. Errors that a test catches by `pytest.raises`, or fails with, are searched with
their causes, contexts and notes.

The texts of errors and log lines are also searched for control characters, since a part of them comes from the network.
"""

import functools
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from etcd_aio.errors import AttemptFailure, EtcdError

CANARY: Final = "c4n4ry"
_FORMATTER: Final = logging.Formatter()


def secret(name: str = "secret") -> str:
    """A secret for a test: a password, a token, a private value."""
    return f"{CANARY}-{name}"


class LeakDetector(logging.Handler):
    """Records where the canary was found, or a text that is not one line of printable characters."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._seen: list[str] = []

    def look(self, where: str, *texts: str) -> None:
        """Search `texts`. Only the place is recorded: a report must not repeat the secret."""
        if any(CANARY in text for text in texts):
            self._seen.append(where)

    def look_at_error(self, where: str, error: BaseException) -> None:
        """Search an error, its causes and its contexts."""
        for one in chain(error):
            notes = getattr(one, "__notes__", ())
            self.look(f"{where}: {type(one).__name__}", str(one), repr(one), *notes)
            if isinstance(one, EtcdError | AttemptFailure) and not all(
                text.isprintable() for text in (str(one), *notes)
            ):
                self._seen.append(f"control characters {where}: {type(one).__name__}")

    def emit(self, record: logging.LogRecord) -> None:
        """Search the text of a log record, its traceback and its values."""
        try:
            self.look(f"log of {record.name}", record.getMessage(), repr(record.args), _FORMATTER.format(record))
            if record.name.startswith("etcd_aio") and not record.getMessage().isprintable():
                self._seen.append(f"control characters in a log of {record.name}")
        except Exception:
            self.handleError(record)

    def seen(self) -> list[str]:
        """Return the places since the last call."""
        seen, self._seen = self._seen, []
        return seen

    def install(self) -> Callable[[], None]:
        """Search logs, warnings and errors from now on. Returns a function that ends it."""
        root = logging.getLogger()
        root.addHandler(self)
        undo = [
            lambda: root.removeHandler(self),
            _after(EtcdError, "__init__", lambda error: self.look_at_error("made", error)),
            _after(EtcdError, "add_note", lambda error: self.look_at_error("noted", error)),
            _after(AttemptFailure, "__init__", lambda error: self.look_at_error("made", error)),
            _after(pytest.RaisesExc, "__exit__", self._caught),
            self._search_warnings(),
        ]

        def end() -> None:
            for one in undo:
                one()

        return end

    def _search_warnings(self) -> Callable[[], None]:
        original = warnings.warn

        def warn(
            message: Warning | str,
            category: type[Warning] | None = None,
            stacklevel: int = 1,
            source: object = None,
            **more: Any,
        ) -> None:
            self.look("a warning", str(message))
            original(message, category, stacklevel + 1, source, **more)

        def end() -> None:
            warnings.warn = original

        warnings.warn = warn
        return end

    def _caught(self, raises: "pytest.RaisesExc[BaseException]") -> None:
        caught = raises.excinfo
        if caught is not None and caught._excinfo is not None:
            self.look_at_error("caught by the test", caught.value)


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error, its causes and contexts, and the members of error groups; each once."""
    waiting, known = [error], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in known:
            continue
        known.add(id(one))
        yield one
        waiting += [other for other in (one.__cause__, one.__context__) if other is not None]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions


def _after(kind: type[Any], name: str, then: Callable[[Any], None]) -> Callable[[], None]:
    """Call `then` after every call of a method. Returns a function that ends it."""
    original = getattr(kind, name)
    is_own = name in vars(kind)

    @functools.wraps(original)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        then(self)
        return result

    def undo() -> None:
        if is_own:
            setattr(kind, name, original)
        else:
            delattr(kind, name)

    setattr(kind, name, watched)
    return undo
