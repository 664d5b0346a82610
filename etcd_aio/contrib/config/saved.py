"""Saved: the file with the last good settings, for a start without etcd. Only its owner may read it."""

import asyncio
import json
import logging
import os
import stat
from base64 import b64decode, b64encode
from binascii import Error
from itertools import count
from pathlib import Path
from typing import Final

from etcd_aio.base import in_thread, log_for, start_background_task
from etcd_aio.contrib.config.snapshot import Snapshot
from etcd_aio.errors import ConfigError

logger: Final = logging.getLogger("etcd_aio.config")

_FORMAT: Final = 1
_OTHERS: Final = 0o077
_numbers: Final = count(1)
_PATIENCE: Final = 2.0  # seconds for the last write, as for the revocation of a lease


def _open_at_once(path: str, flags: int) -> int:
    """Open a file, and do not wait for a writer: it may be a named pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class SavedSettings:
    """Reads and writes the file.

    Args:
        path: of the file.
        source: the settings in words, with their prefix; a file of other ones is refused.
        store: what the settings are read from; the lines in logs have its name.
    """

    def __init__(self, path: Path, source: str, store: object = None) -> None:
        self._log = log_for(logger, store)
        self._path = path
        self._number = next(_numbers)  # others of this process may write the same file
        self._source = source
        self._next: Snapshot | None = None
        self._is_loaded = False
        self._saving: asyncio.Task[None] | None = None

    async def load(self) -> Snapshot | None:
        """The settings in the file; None if there is no file.

        Raises:
            ConfigError: others may read the file, or it is none of these settings.
        """
        found = await in_thread(self._read, "etcd_aio settings")
        self._is_loaded = True
        self._start()
        return found

    def _read(self) -> Snapshot | None:
        try:
            with open(self._path, "rb", opener=_open_at_once) as file:
                mode = os.fstat(file.fileno()).st_mode
                if not stat.S_ISREG(mode):
                    raise ConfigError(f"{self._path} is no regular file")
                if mode & _OTHERS:
                    raise ConfigError(f"others than its owner may use {self._path}: its mode must be 0600")
                content = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be read: {error.strerror}") from None
        problem = f"{self._path} has no {self._source}"
        try:
            found = json.loads(content)
            entries = {key: b64decode(value, validate=True) for key, value in found["entries"].items()}
            snapshot = Snapshot(entries, int(found["revision"]))
            is_right = found["format"] == _FORMAT and found["source"] == self._source
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, Error):
            raise ConfigError(problem) from None
        if not is_right:
            raise ConfigError(problem)
        return snapshot

    def save(self, snapshot: Snapshot) -> None:
        """Write the file in the background; the newest settings count. A failure is logged.

        Nothing is written before the file was loaded: etcd may answer first, and one of other settings must stay.
        """
        self._next = snapshot
        self._start()

    def _start(self) -> None:
        if self._is_loaded and self._next is not None and (self._saving is None or self._saving.done()):
            self._saving = start_background_task(self._save(), name="etcd_aio save settings")

    async def _save(self) -> None:
        while self._next is not None:
            snapshot, self._next = self._next, None
            try:
                await in_thread(lambda snapshot=snapshot: self._write(snapshot), "etcd_aio settings")  # type: ignore[misc] # a default in a lambda
            except OSError as error:
                self._log.warning("the settings could not be saved in %s: %s", self._path, error.strerror)

    def _write(self, snapshot: Snapshot) -> None:
        entries = {key: b64encode(value).decode() for key, value in snapshot.items()}
        content = {"format": _FORMAT, "source": self._source, "revision": snapshot.revision, "entries": entries}
        new = self._path.with_name(f".{self._path.name}.{os.getpid()}.{self._number}")
        new.unlink(missing_ok=True)
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)  # a reader sees the old file or the new one
        except BaseException:  # a cancellation too: no half file stays
            new.unlink(missing_ok=True)
            raise

    async def aclose(self) -> None:
        """Wait until what was to be saved is, for 2 seconds at most: a disk may hang."""
        saving = self._saving
        if saving is None:
            return
        await asyncio.wait([saving], timeout=_PATIENCE)
        if not saving.done():
            saving.cancel()  # its thread ends with the process
            self._log.warning("the settings could not be saved in %s within %.0f s", self._path, _PATIENCE)
