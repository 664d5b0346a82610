"""Contexts: settings under names, in a TOML file of the user. Pure, but for `ContextFile`.

    current = "prod"

    [context.prod]
    endpoints = "https://10.0.0.1:2379"
    user = "root"
    password_command = "pass show etcd/prod"

A context has the global flags by name, each with the text that the flag takes. It has no password: a command prints it.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Final

import click

from etcd_aio.cli.outcome import bad_arguments
from etcd_aio.dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

VARIABLE: Final = "ETCD_AIO_CONTEXT"
PASSWORD_COMMAND: Final = "password_command"  # noqa: S105 - the name of a setting
_SECRETS: Final = frozenset({"password", "auth_jwt_token"})
_MARKS: Final[Mapping[str, str]] = {"user": ":", "proxy": "@"}  # which show that there is a password


@dataclass(frozen=True, slots=True)
class Context:
    """Settings under a name.

    Attributes:
        name: the name.
        settings: the values of global flags by name, and perhaps `password_command`.
    """

    name: str
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts of a user.

    Attributes:
        current: the name of the one that counts if none is named; empty for none.
        by_name: the contexts.
    """

    current: str = ""
    by_name: Mapping[str, Context] = field(default_factory=dict)

    def chosen(self, name: str) -> Context | None:
        """The context of a name, or the current one; None if there is neither.

        Raises:
            Failure: there is no context of this name.
        """
        wanted = name or self.current
        if not wanted:
            return None
        if wanted not in self.by_name:
            raise bad_arguments(f"there is no context {wanted!r}: `etcd-aio context list` shows them")
        return self.by_name[wanted]


def parse(text: str) -> Contexts:
    """The contexts in the text of the file.

    Raises:
        ValueError: the text is not TOML, or has something else.
    """
    import tomllib

    document = tomllib.loads(text)
    current, tables = document.pop("current", ""), document.pop("context", {})
    if document or not isinstance(current, str) or not isinstance(tables, dict):
        raise ValueError("it has `current`, and tables `[context.NAME]`, and nothing else")
    return Contexts(current, {name: Context(name, _settings(name, table)) for name, table in tables.items()})


def _settings(name: str, table: object) -> dict[str, str]:
    if not isinstance(table, dict):
        raise TypeError(f"context {name!r} is not a table")
    for setting, value in table.items():
        if not isinstance(value, str):
            raise TypeError(f"{setting} of context {name!r} must be a string")
        if has_secret(setting, value):
            raise ValueError(f"context {name!r} has a secret: use {PASSWORD_COMMAND}, or a variable")
    return dict(table)


def has_secret(setting: str, value: str) -> bool:
    """Whether a setting is one that no context may have."""
    mark = _MARKS.get(setting)
    return setting in _SECRETS or (mark is not None and mark in value)


def dump(contexts: Contexts) -> str:
    """The text of the file."""
    lines = [f"current = {_string(contexts.current)}"]
    for name, context in sorted(contexts.by_name.items()):
        lines += ["", f"[context.{_string(name)}]"]
        lines += [f"{setting} = {_string(value)}" for setting, value in sorted(context.settings.items())]
    return "\n".join(lines) + "\n"


def _string(text: str) -> str:
    """A string of TOML, which is as in JSON, but for one control character."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _default_path() -> str:
    return os.path.join(click.get_app_dir("etcd-aio"), "config.toml")  # noqa: PTH118 - without pathlib


class ContextFile:
    """The file with the contexts, which only its user can read.

    Args:
        path: its place. Default: `etcd-aio/config.toml` in the folder for settings of this user.
    """

    def __init__(self, path: "Path | None" = None) -> None:
        self._given = path

    @property
    def path(self) -> "Path":
        """Its place."""
        from pathlib import Path  # few users have the file

        return self._given or Path(_default_path())

    def read(self) -> Contexts:
        """The contexts; none if there is no file.

        Raises:
            Failure: the file cannot be read, or is malformed.
        """
        if self._given is None and not os.path.lexists(_default_path()):
            return Contexts()
        try:
            return parse(self.path.read_text())
        except (FileNotFoundError, NotADirectoryError):
            return Contexts()
        except OSError as error:
            raise bad_arguments(f"{self.path}: {error.strerror}") from None
        except (ValueError, TypeError) as error:
            raise bad_arguments(f"{self.path}: {error}") from None

    def write(self, contexts: Contexts) -> None:
        """Replace the file.

        Raises:
            Failure: the file cannot be written.
        """
        import tempfile
        from pathlib import Path

        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path.parent)  # of mode 0600
            try:
                with os.fdopen(handle, "w") as file:
                    file.write(dump(contexts))
                Path(name).replace(self.path)
            except BaseException:  # Ctrl-C too: no half file stays
                with suppress(FileNotFoundError):
                    Path(name).unlink()
                raise
        except OSError as error:
            raise bad_arguments(f"{self.path}: {error.strerror}") from None
