"""Loggers that distinguish the clients of a process: the lines and the records have the name of the client."""

import logging
from collections.abc import MutableMapping
from typing import Any, TypeAlias

Log: TypeAlias = "logging.Logger | logging.LoggerAdapter[logging.Logger]"


class _NamedLog(logging.LoggerAdapter[logging.Logger]):
    """A logger for one client: the lines begin with its name, and the records have the field `client`."""

    def __init__(self, logger: logging.Logger, client: str) -> None:
        super().__init__(logger)
        self._client = client

    def process(self, msg: object, kwargs: MutableMapping[str, Any]) -> tuple[object, MutableMapping[str, Any]]:
        """Add the name. It has no `%`: see the check of the option."""
        kwargs["extra"] = {"client": self._client, **(kwargs.get("extra") or {})}
        return f"{self._client}: {msg}", kwargs


def log_of(logger: logging.Logger, client: str) -> Log:
    """The logger for the client of this name; the logger itself if the client has none."""
    return _NamedLog(logger, client) if client else logger


def log_for(logger: logging.Logger, store: object) -> Log:
    """The logger for the client that a store is, or wraps. A wrapper of the application may have no name."""
    name = getattr(store, "name", "")
    return log_of(logger, name if isinstance(name, str) else "")
