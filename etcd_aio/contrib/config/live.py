"""LiveConfig: settings from etcd as one object, which is replaced by another one when they change.

The keys come from a cache, whose content is that of one revision. Each change of it is validated as a whole, and either
replaces the settings in one step, or is refused and leaves them as they are.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final, Generic, Literal, Self, TypeAlias, TypeVar, get_args, overload

from etcd_aio import EtcdError, EtcdTimeoutError, KeyLike, KeyRange, KeyValue, Store
from etcd_aio.arguments import encode_key
from etcd_aio.base import (
    Backoff,
    NotAwaitable,
    Pauses,
    deadline_after,
    log_for,
    start_background_task,
    when_constructed,
)
from etcd_aio.cache import Cache, CacheState
from etcd_aio.contrib.config.document import nested, parsed
from etcd_aio.contrib.config.models import InvalidSettingsError, build
from etcd_aio.contrib.config.saved import SavedSettings
from etcd_aio.contrib.config.snapshot import Snapshot, checked_prefix, relative
from etcd_aio.errors import CacheError, ClientUsageError, InvalidRequestError
from etcd_aio.types import shown_key

T = TypeVar("T")

OnInvalid: TypeAlias = Literal["keep", "raise"]
"""What invalid settings do to `changes()`: nothing, or they end it."""

logger: Final = logging.getLogger("etcd_aio.config")

_NOT_ENTERED: Final = "not entered: write `async with LiveConfig(...) as config:`"
_AGAIN: Final = Backoff(initial=0.5, multiplier=2.0, maximum=15.0, jitter=0.5)  # many processes read the same


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


@dataclass(frozen=True, slots=True, repr=False)
class _Version(Generic[T]):
    """Settings, and the keys that they were made of."""

    settings: T
    snapshot: Snapshot


class LiveConfig(NotAwaitable, Generic[T]):
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
    model replace nothing; `error` says why. Lost connections, compactions and outages need no care. Entering is tried
    until `timeout`; once it is entered, reading is tried for ever.

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

    usage: ClassVar[str] = _NOT_ENTERED

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
        if on_invalid not in get_args(OnInvalid):
            words = ", ".join(map(repr, get_args(OnInvalid)))
            raise InvalidRequestError(f"on_invalid must be one of {words}; got {on_invalid!r}")
        if not callable(model):
            raise TypeError(f"model must be a class or a function, got {type(model).__name__}")
        deadline_after(timeout, 0.0)
        self._store = client
        self._log = log_for(logger, client)
        self._model = model
        self._prefix = b"" if prefix is None else checked_prefix(prefix)
        self._document = None if document is None else relative(encode_key(document), b"")
        self._keys = KeyRange.of(document, prefix=prefix)
        self._raises = on_invalid == "raise"
        self._what = f"settings of {shown_key(self._keys.key)[1:]}"
        self._saved = None if cache is None else SavedSettings(Path(fspath(cache)), self._what, client)
        self._timeout = timeout
        self._version: _Version[T] | None = None
        self._is_saved_version = False
        self._error: EtcdError | InvalidSettingsError | None = None
        self._cache: Cache[KeyValue] | None = None
        self._content = -1  # the version of the cache's content that was taken last
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self._moved = asyncio.Event()  # replaced with each change of what is above

    @when_constructed
    def __repr__(self) -> str:
        name = getattr(self._model, "__name__", type(self._model).__name__)
        version = self._version
        state = "not loaded" if version is None else f"{'stale ' if self.is_stale else ''}{version.snapshot!r}"
        return f"<LiveConfig {name}, {self._what}: {state}>"

    # The block.

    async def __aenter__(self) -> Self:
        """Read the settings.

        With `cache=`, settings come from the file if no member can be reached or what is in etcd is invalid.

        Raises:
            InvalidSettingsError: the settings in etcd are invalid, and there are none in a file.
            EtcdError: they could not be read, and there are none in a file; or the client may not read them.
            ConfigError: others may read the file, or it is of other settings.
            ClientUsageError: it was entered before.

        Cancellation leaves nothing behind.
        """
        if self._task is not None:
            raise ClientUsageError("a configuration can only be entered once: make another one")
        try:
            saved = None if self._saved is None else await self._saved.load()
            moved = self._moved
            self._task = start_background_task(self._follow(), name=f"etcd_aio {self._what}")
            self._task.add_done_callback(lambda _: self._tell())
            await self._wait_first(moved)
            if self._version is None:
                self._begin_with(saved, self._task)
        except BaseException:  # a cancellation too
            await self.aclose()
            raise
        return self

    async def _wait_first(self, moved: asyncio.Event) -> None:
        """Wait until the settings were read, or could not be."""
        try:
            async with asyncio.timeout(self._timeout):
                await moved.wait()
        except TimeoutError:
            self._error = EtcdTimeoutError(f"the {self._what} were not read within {self._timeout} s")

    def _begin_with(self, saved: Snapshot | None, following: "asyncio.Task[None]") -> None:
        """Begin with the settings of the file, since there are none of etcd."""
        error = self._error
        if error is None:
            following.result()  # it was cancelled by the application, or has a bug
            raise CacheError(f"the task that follows the {self._what} has ended")
        is_passing = isinstance(error, InvalidSettingsError) or error.retryable
        if saved is None or not is_passing:
            raise error
        self._version = _Version(self._built(saved), saved)
        self._is_saved_version = True
        self._log.warning("%s: as saved at revision %d, since %s", self._what, saved.revision, error)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End: `changes()` ends, and `current` stays as it is. Safe to repeat."""
        self._is_closed = True
        self._tell()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._saved is not None:
            await self._saved.aclose()

    # State.

    @property
    def current(self) -> T:
        """The settings. The object is the same until they change.

        Raises:
            ClientUsageError: the block was not entered.
        """
        return self._entered().settings

    def _entered(self) -> _Version[T]:
        if self._version is None:
            raise ClientUsageError(_NOT_ENTERED)
        return self._version

    @property
    def revision(self) -> int:
        """The revision of etcd at which the settings were read.

        Raises:
            ClientUsageError: the block was not entered.
        """
        return self._entered().snapshot.revision

    @property
    def keys(self) -> frozenset[str]:
        """The keys that etcd has, without the prefix.

        Raises:
            ClientUsageError: the block was not entered.
        """
        return frozenset(self._entered().snapshot)

    @property
    def error(self) -> EtcdError | InvalidSettingsError | None:
        """Why the settings are not the newest of etcd: those are invalid, or cannot be read; None if nothing is wrong.

        A short outage is not an error: see `is_stale`.
        """
        return self._error

    @property
    def is_stale(self) -> bool:
        """Whether the settings may not be the newest: from the file, with an `error`, or without a connection to etcd.

        An outage counts from its tenth second on, as for `client.cache()`: shorter ones happen at each election.
        """
        cache = self._cache
        is_followed = cache is not None and cache.state is CacheState.READY
        return self._is_saved_version or self._error is not None or not is_followed

    async def wait_revision(self, revision: int, *, timeout: float | None = 5.0) -> None:
        """Wait until the settings are as new as a revision, such as that of a put; or are invalid at that one.

        Args:
            revision: the revision.
            timeout: seconds. Default: 5; None for no limit.

        Raises:
            EtcdTimeoutError: the time was over before.
            ClientUsageError: the block was not entered, or was left.
        """
        self._entered()
        try:
            async with asyncio.timeout(timeout):
                while not await self._reaches(revision):
                    if self._is_closed:
                        raise ClientUsageError("the block of the configuration has ended")
                    await self._moved.wait()
        except TimeoutError as error:
            if isinstance(error, EtcdError):
                raise
            raise EtcdTimeoutError(f"the {self._what} did not come to revision {revision} in time") from None

    async def _reaches(self, revision: int) -> bool:
        cache = self._cache
        if cache is None or self._is_closed:
            return False
        try:
            await cache.wait_revision(revision, timeout=None)
            self._take(cache)
        except CacheError:  # it has ended, and another one follows
            return False
        return True

    # Followers.

    def changes(self) -> "ConfigChanges[T]":
        """Follow the changes: `async for change in config.changes():`. It ends with the block, or with the client.

        The first one is about what `current` is now. A consumer that is slower than the changes gets several in one,
        and never misses the newest. Each caller has an iteration of its own.

        Raises:
            ClientUsageError: the block was not entered. Iterating raises `InvalidSettingsError` with
                `on_invalid="raise"`.
        """
        return ConfigChanges(self, self._entered())

    async def _next_version(self, seen: _Version[T]) -> _Version[T] | None:
        """The settings when they are others than those that were seen; None if no others can come."""
        while True:
            if self._entered() is not seen:
                return self._version
            if self._raises and isinstance(self._error, InvalidSettingsError):
                raise self._error.with_traceback(None)
            if self._is_closed or (self._task is not None and self._task.done()):
                return None  # the latter if the client is closed
            await self._moved.wait()

    def _tell(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    # Following etcd.

    async def _follow(self) -> None:
        pauses = Pauses(_AGAIN)
        while True:
            self._content = -1
            cache: Cache[KeyValue] = Cache(self._store, self._keys)
            self._cache = cache
            try:
                async with cache:
                    pauses.reset()
                    changes = cache.changes()
                    self._take(cache)
                    async for _ in changes:
                        self._take(cache)
            except EtcdError as error:
                self._error = error
                self._tell()
                if isinstance(error, ClientUsageError):  # the client is closed
                    return
                again = "" if self._version is None and self._saved is None else "; this is tried again"
                self._log.warning("the %s cannot be read from etcd%s: %s", self._what, again, error)
            await pauses.wait()

    def _take(self, cache: Cache[KeyValue]) -> None:
        """Let the content of the cache become the settings, if it is new and fits."""
        if cache.content_version == self._content:
            return
        self._content = cache.content_version
        entries = {relative(key, self._prefix): kv.value for key, kv in cache.range().items()}
        snapshot = Snapshot(entries, cache.revision)
        try:
            version = self._version
            has_all = version is not None and version.snapshot == snapshot  # then the object stays the same
            settings = version.settings if version is not None and has_all else self._built(snapshot)
        except InvalidSettingsError as error:
            before, self._error = self._error, error
            if not isinstance(before, InvalidSettingsError) or before.problems != error.problems:
                kept = "" if self._version is None else f"; those of revision {self.revision} are kept"
                self._log.error("the %s are invalid and not used: %s%s", self._what, error, kept)  # the text has it all
        else:
            if isinstance(self._error, InvalidSettingsError):
                self._log.info("the %s are valid again at revision %d", self._what, snapshot.revision)
            self._version = _Version(settings, snapshot)
            self._error, self._is_saved_version = None, False
            if self._saved is not None:
                self._saved.save(snapshot)
        self._tell()

    def _built(self, snapshot: Snapshot) -> T:
        built: T = build(self._model, lambda: self._data(snapshot), snapshot.revision)
        return built

    def _data(self, snapshot: Snapshot) -> dict[str, Any]:
        if self._document is None:
            return nested(snapshot, self._model)
        return parsed(self._document, snapshot[self._document]) if snapshot else {}


class ConfigChanges(AsyncIterator[ConfigChange[T]]):
    """The changes of settings; made by `LiveConfig.changes`. Cancelling a step loses nothing."""

    def __init__(self, owner: LiveConfig[T], seen: _Version[T]) -> None:
        self._owner = owner
        self._seen = seen
        self._has_ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConfigChange[T]:
        while not self._has_ended:
            try:
                version = await self._owner._next_version(self._seen)
            except InvalidSettingsError:
                self._has_ended = True
                raise
            if version is None:
                break
            seen, self._seen = self._seen, version
            keys = _changed(seen.snapshot, version.snapshot)
            if keys:
                return ConfigChange(seen.settings, version.settings, version.snapshot.revision, keys)
        raise StopAsyncIteration


def _changed(old: Snapshot, new: Snapshot) -> frozenset[str]:
    return frozenset(key for key in {*old, *new} if old.get(key) != new.get(key))
