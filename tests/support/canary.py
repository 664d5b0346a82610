"""The canary: every secret in a test contains one text, and that text must never be seen where people look.

Knows: where a secret could be seen: records of the log, warnings, captured output, texts and reprs of errors. Never
knows: what the secrets are for.

Logs, warnings and output are read whole. Errors are found in two ways: ours are read when they are made and when a note
is added, whoever catches them; and whatever a test catches by `pytest.raises`, or fails with, is read with its causes,
contexts and notes.
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


class Watchman(logging.Handler):
    """Collects where the canary was seen since it was last asked."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._seen: list[str] = []

    def look(self, where: str, *texts: str) -> None:
        """Look through `texts`; what is kept is where, not what: reports must not repeat it either."""
        if any(CANARY in text for text in texts):
            self._seen.append(where)

    def look_at_error(self, where: str, error: BaseException) -> None:
        """Look at an error, at what caused it, and at what it was raised from."""
        for one in chain(error):
            self.look(f"{where}: {type(one).__name__}", str(one), repr(one), *getattr(one, "__notes__", ()))

    def emit(self, record: logging.LogRecord) -> None:
        """A record of the log. Its text, its traceback and the values in it."""
        try:
            self.look(f"log of {record.name}", record.getMessage(), repr(record.args), _FORMATTER.format(record))
        except Exception:
            self.handleError(record)

    def seen(self) -> list[str]:
        """Where it was seen; the next time it is asked it tells what is new."""
        seen, self._seen = self._seen, []
        return seen

    def install(self) -> Callable[[], None]:
        """Watch the log and every error; returns what ends that."""
        root = logging.getLogger()
        root.addHandler(self)
        undo = [
            lambda: root.removeHandler(self),
            _after(EtcdError, "__init__", lambda error: self.look_at_error("made", error)),
            _after(EtcdError, "add_note", lambda error: self.look_at_error("noted", error)),
            _after(AttemptFailure, "__init__", lambda error: self.look_at_error("made", error)),
            _after(pytest.RaisesExc, "__exit__", self._caught),
            self._watch_warnings(),
        ]

        def end() -> None:
            for one in undo:
                one()

        return end

    def _watch_warnings(self) -> Callable[[], None]:
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
    """An error, its causes and contexts, and what is in groups of errors; each once."""
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
    """Have `then` called behind every call of a method; returns what ends that."""
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
