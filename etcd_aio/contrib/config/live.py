"""LiveConfig: settings from etcd as one object, which is replaced by another one when they change.

The keys come from a cache, whose content is that of one revision. Each change of it is validated as a whole, and either
replaces the settings in one step, or is refused and leaves them as they are.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar, get_args, overload

from etcd_aio import EtcdError, EtcdTimeoutError, KeyLike, KeyRange, Store
from etcd_aio.arguments import encode_key, one_of
from etcd_aio.base import deadline_after, resolve, when_constructed
from etcd_aio.cache import Derived, DerivedChanges
from etcd_aio.contrib.config.document import nested, parsed
from etcd_aio.contrib.config.models import InvalidSettingsError, build
from etcd_aio.contrib.config.saved import SavedSettings
from etcd_aio.contrib.config.snapshot import Snapshot, checked_prefix, relative
from etcd_aio.errors import InvalidRequestError
from etcd_aio.types import shown_key

T = TypeVar("T")

OnInvalid: TypeAlias = Literal["keep", "raise"]
"""The effect of invalid settings on `changes()`: none, or they end it."""

logger: Final = logging.getLogger("etcd_aio.config")


@dataclass(frozen=True, slots=True, repr=False)
class ConfigChange(Generic[T]):
    """A change of settings.

    Attributes:
        old: the settings before.
        new: the settings now.
        revision: of etcd, at which they were read.
        keys: the keys that were written or deleted, without the prefix.
    """

    old: T
    new: T
    revision: int
    keys: frozenset[str]

    def __repr__(self) -> str:
        return f"<ConfigChange of {', '.join(sorted(self.keys))} at revision {self.revision}>"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class _Version(Generic[T]):
    """Settings, and the keys that they were made of."""

    settings: T
    snapshot: Snapshot


class LiveConfig(Derived[_Version[T], ConfigChange[T]]):
    """The settings in etcd, validated, and kept up to date.

        @dataclass(frozen=True)
        class Settings:
            debug: bool = False
            limit: int = 10

        async with LiveConfig(client, Settings, prefix="app/config/") as config:
            config.current.limit                        no await; the same object until something changes
            async for change in config.changes(): ...   .old .new .revision .keys

    A key is a path, so `app/config/limits/max` is the setting `max` in `limits`. Its value is JSON, or text where the
    setting is one, such as a `str`. A key that is deleted leaves the default of the model.

    All changes of one revision are one new object: a txn that changes several keys is never seen in part. If changes
    come faster than they can be validated, some are left out, and the newest always comes. Settings that do not fit the
    model replace nothing; `error` says why. Lost connections, compactions and outages need no care: once it is entered,
    reading is tried for ever.

    Entering raises an `EtcdError` if the settings cannot be read within `timeout`, `InvalidSettingsError` if they do
    not fit the model. With `cache=`, they come from that file then, unless the client may not read them; `ConfigError`
    says that others may read the file, or that it is of other settings.

    Args:
        client: the client, or a namespace.
        model: a class of pydantic, msgspec or dataclasses; `dict` for read-only nested mappings; or a function that
            makes settings of nested data. Choose a frozen class, since all readers share the object.
        prefix: of the keys, with its last slash.
        document: instead of `prefix`, the one key that has all settings as a JSON object.
        on_invalid: `"keep"`: invalid settings are logged. `"raise"`: they also end `changes()` by their error.
            Default: `"keep"`.
        cache: a file for the last good settings, of which a start without etcd is made. It is written with the mode
            0600, and refused if others may read it. Default: None, entering needs etcd.
        timeout: seconds for reading the settings on entering. Default: None, those of the calls of the client.

    Raises:
        InvalidRequestError, TypeError: an argument is invalid.
    """

    usage: ClassVar[str] = "settings cannot be awaited: write `async with LiveConfig(...) as config:`"
    _noun: ClassVar[str] = "a configuration"

    @overload
    def __init__(
        self: "LiveConfig[Mapping[str, object]]",
        client: Store,
        model: type[dict[str, object]],
        *,
        prefix: KeyLike | None = None,
        document: KeyLike | None = None,
        on_invalid: OnInvalid = "keep",
        cache: str | PathLike[str] | None = None,
        timeout: float | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        client: Store,
        model: type[T] | Callable[[dict[str, object]], T],
        *,
        prefix: KeyLike | None = None,
        document: KeyLike | None = None,
        on_invalid: OnInvalid = "keep",
        cache: str | PathLike[str] | None = None,
        timeout: float | None = None,
    ) -> None: ...

    def __init__(
        self,
        client: Store,
        model: Any,
        *,
        prefix: KeyLike | None = None,
        document: KeyLike | None = None,
        on_invalid: OnInvalid = "keep",
        cache: str | PathLike[str] | None = None,
        timeout: float | None = None,
    ) -> None:
        if (prefix is None) == (document is None):
            raise InvalidRequestError("give either prefix= or document=")
        one_of(get_args(OnInvalid), on_invalid, "on_invalid")
        if not callable(model):
            raise TypeError(f"model must be a class or a function, got {type(model).__name__}")
        deadline_after(timeout, 0.0)
        self._model = model
        self._prefix = b"" if prefix is None else checked_prefix(prefix)
        self._document = None if document is None else relative(encode_key(document), b"")
        keys = KeyRange.of(document, prefix=prefix)
        super().__init__(client, keys, what=f"settings of {shown_key(keys.key)[1:]}", logger=logger)
        self._raises = on_invalid == "raise"
        self._saved = None if cache is None else SavedSettings(Path(fspath(cache)), self._what, client)
        self._entering_timeout = timeout
        self._is_saved_version = False

    @when_constructed
    def __repr__(self) -> str:
        name = getattr(self._model, "__name__", type(self._model).__name__)
        version = self._value
        state = "not loaded" if version is None else f"{'stale ' if self.is_stale else ''}{version.snapshot!r}"
        return f"<LiveConfig {name}, {self._what}: {state}>"

    # The block.

    async def _wait_first(self, first: "asyncio.Future[Exception | None]", task: "asyncio.Task[None]") -> None:
        saved = None if self._saved is None else await self._saved.load()
        error: EtcdError | InvalidSettingsError
        try:
            async with asyncio.timeout(self._entering_timeout):
                await super()._wait_first(first, task)
            error = self._error  # what etcd has is invalid, if it is
        except EtcdError as raised:
            error = raised
        except TimeoutError:
            error = EtcdTimeoutError(f"the {self._what} were not read within {self._entering_timeout} s")
            resolve(first, error)  # later ones are logged
        if self._value is not None:  # etcd has answered, perhaps after an error, while the file was read
            return
        if saved is None or not (isinstance(error, InvalidSettingsError) or error.retryable):
            raise error
        self._take(_Version(self._built(saved), saved))
        self._error, self._is_saved_version = error, True
        self._log.warning("%s: as saved at revision %d, since %s", self._what, saved.revision, error)

    async def aclose(self) -> None:
        """End: `changes()` ends, and `current` stays as it is. Safe to repeat."""
        await super().aclose()
        if self._saved is not None:
            await self._saved.aclose()

    # State.

    @property
    def current(self) -> T:
        """The settings. The object is the same until they change.

        Raises:
            ClientUsageError: the block was not entered.
        """
        version = self._value
        return (self._read() if version is None else version).settings

    @property
    def revision(self) -> int:
        """The revision of etcd at which the settings were read.

        Raises:
            ClientUsageError: the block was not entered.
        """
        return self._read().snapshot.revision

    @property
    def keys(self) -> frozenset[str]:
        """The keys that etcd has, without the prefix.

        Raises:
            ClientUsageError: the block was not entered.
        """
        return frozenset(self._read().snapshot)

    @property
    def error(self) -> EtcdError | InvalidSettingsError | None:  # type: ignore[override] # an error of the settings too
        """Why the settings are not the newest of etcd: those are invalid, or cannot be read; None if nothing is wrong.

        A short outage is not an error: see `is_stale`.
        """
        error: EtcdError | InvalidSettingsError | None = self._error
        return error

    @property
    def is_stale(self) -> bool:
        """Whether the settings may not be the newest: from the file, with an `error`, or without a connection to etcd.

        An outage counts from its tenth second on, as for `client.cache()`: shorter ones happen at each election.
        """
        return self._is_saved_version or super().is_stale

    # Followers.

    def changes(self) -> DerivedChanges[ConfigChange[T]]:
        """Follow the changes: `async for change in config.changes():`. It ends with the block, or with the client.

        The first one is about what `current` is now. A consumer that is slower than the changes gets several in one,
        and never misses the newest. Each caller has an iteration of its own.

        Raises:
            ClientUsageError: the block was not entered. Iterating raises `InvalidSettingsError` with
                `on_invalid="raise"`.
        """
        return DerivedChanges(self, self._read())

    def _change(self, before: _Version[T] | None, value: _Version[T]) -> ConfigChange[T] | None:
        if before is None:
            return None
        old, new = before.snapshot, value.snapshot
        keys = frozenset(key for key in {*old, *new} if old.get(key) != new.get(key))
        return ConfigChange(before.settings, value.settings, new.revision, keys) if keys else None

    def _why_not(self) -> Exception | None:
        return self._error if self._raises and isinstance(self._error, InvalidSettingsError) else None

    # As a value that is made of a cache.

    def _renew(self) -> None:
        """Let the content of the cache become the settings, if it fits."""
        entries = {relative(key, self._prefix): kv.value for key, kv in self._cache.range().items()}
        snapshot = Snapshot(entries, self._cache.revision)
        version = self._value
        try:
            has_all = version is not None and version.snapshot == snapshot  # then the object stays the same
            settings = version.settings if version is not None and has_all else self._built(snapshot)
        except InvalidSettingsError as error:
            before, self._error = self._error, error
            if not isinstance(before, InvalidSettingsError) or before.problems != error.problems:
                kept = "" if version is None else f"; those of revision {version.snapshot.revision} are kept"
                self._log.error("the %s are invalid and not used: %s%s", self._what, error, kept)  # the text has it all
            self._moved.wake()
            return
        if isinstance(self._error, InvalidSettingsError):
            self._log.info("the %s are valid again at revision %d", self._what, snapshot.revision)
        self._error, self._is_saved_version = None, False
        if self._saved is not None:
            self._saved.save(snapshot)
        self._take(_Version(settings, snapshot))

    def _built(self, snapshot: Snapshot) -> T:
        built: T = build(self._model, lambda: self._data(snapshot), snapshot.revision)
        return built

    def _data(self, snapshot: Snapshot) -> dict[str, Any]:
        if self._document is None:
            return nested(snapshot, self._model)
        return parsed(self._document, snapshot[self._document]) if snapshot else {}
