"""Adapters: classes with the interface of the asyncio ones, which run each call through the blocking ones in a thread.

Whether a method is a coroutine is read from the asyncio class. A plain method is called in the test's own thread, which
it blocks: `allow_in_loop` allows that.
"""

import asyncio
import inspect
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from functools import partial, wraps
from importlib import import_module
from inspect import getattr_static
from types import FunctionType, MethodType
from typing import Any, Final
from weakref import WeakSet

import etcd_aio
from etcd_aio._exports import EXPORTS
from etcd_aio.errors import BlockingInLoopError
from etcd_aio.portal import Facade
from etcd_aio.sync._facades import PLACES
from tests.support.blocking.threads import AGAIN, LOST, beside, blocking, in_thread

_ADAPTERS: Final[dict[type, "type[Adapter]"]] = {}  # by the blocking class
_RENAMED: Final = {"aclose": "close"}
_PLAIN: Final = ("__contains__", "__len__", "__getitem__", "__iter__", "__bool__", "__call__", "__lt__")
_CLOSED: Final[WeakSet[Any]] = WeakSet()  # tasks that have closed a client or session: they are not cancelled by that
_GONE: Final = (None, None, None)


class Adapter:
    """Base of the adapters.

    Args:
        blocking: the blocking object.
        lost: what cancels the tasks whose blocks are lost.
    """

    _sync: Any
    _lost: "Lost | None" = None
    loop: Any = None
    """The test's loop, of a client."""

    @classmethod
    def around(cls, behind: Any, lost: "Lost | None" = None) -> "Adapter":
        made = cls.__new__(cls)
        made._sync, made._lost = behind, lost
        return made

    def __class_getitem__(cls, item: object) -> type:
        return cls

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"an adapter has no {name}: a test that needs it is left out")
        return self._outward(getattr(self._sync, name))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Adapter):
            return self._sync is other._sync or self._sync._object is other._sync._object
        return NotImplemented

    def __hash__(self) -> int:
        return hash(id(self._sync._object))

    def __repr__(self) -> str:
        return repr(self._sync._object)

    @property
    def backend(self) -> Any:
        """What is behind a client, for tests that put something between."""
        return self._sync._object.backend

    @backend.setter
    def backend(self, backend: Any) -> None:
        self._sync._object.backend = backend

    async def in_its_loop(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Await what runs in the loop of the blocking client."""
        return await in_thread(partial(self._sync._run, function, *arguments, **keywords))

    def _outward(self, value: Any, lost: "Lost | None" = None) -> Any:
        """What the test gets for a result."""
        if value is self._sync:
            return self
        return outward(value, lost or self._lost)


class Lost:
    """What `on_lost="cancel"` is for asyncio, on the callback of blocking code: it cancels the tasks in lost blocks."""

    def __init__(self) -> None:
        self._inside: dict[int, tuple[Any, asyncio.Task[Any]]] = {}
        self._cancelled: set[int] = set()
        self._is_told = False
        self._spares: AbstractSet[Any] = frozenset()

    def __call__(self, error: Exception) -> None:
        self._is_told = True
        self._spares = _CLOSED if "client is" in str(error) or "of its session" in str(error) else frozenset()
        self._cancel()

    def _cancel(self) -> None:
        for key, (block, task) in list(self._inside.items()):
            if getattr(block, "is_lost", True) and key not in self._cancelled and task not in self._spares:
                self._cancelled.add(key)
                task.get_loop().call_soon_threadsafe(task.cancel, LOST)

    def enter(self, block: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._inside[id(block)] = block, task
        if self._is_told:  # before it was entered
            self._cancel()

    def leave(self, block: Any, raised: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        """What the blocking block is to see of an exception."""
        _, task = self._inside.pop(id(block), (None, None))
        if id(block) in self._cancelled and task is not None:
            self._cancelled.discard(id(block))
            again = AGAIN.pop(task, None)
            if again is not None:
                again.cancel()
            elif task.uncancel() == 0 and raised[0] is not None and issubclass(raised[0], asyncio.CancelledError):
                return _GONE
        return raised


def outward(value: Any, lost: Lost | None = None) -> Any:
    """The adapter of a blocking object, also in tuples and lists; other values are returned as they are."""
    if type(value) in (tuple, list):
        return type(value)(outward(one, lost) for one in value)
    adapter = _ADAPTERS.get(type(value))
    if adapter is not None:
        return adapter.around(value, lost)
    if isinstance(value, AbstractContextManager) and not hasattr(value, "read"):
        return _Block(value)
    return value


def inward(value: Any) -> Any:
    """What the blocking object gets for an argument."""
    if isinstance(value, Adapter):
        return value._sync
    if type(value) in (tuple, list, set):
        return type(value)(map(inward, value))
    if type(value) is dict:
        return {name: inward(one) for name, one in value.items()}
    if isinstance(value, MethodType) and isinstance(value.__self__, Adapter):
        return getattr(value.__self__._sync, value.__name__)
    if isinstance(value, FunctionType | MethodType | partial) or inspect.iscoroutinefunction(value):
        run = blocking(value)
        return wraps(value)(lambda *arguments: inward(run(*map(outward, arguments)))) if callable(value) else value
    return value


class _Block:
    """`async with` for what blocking code uses by `with`."""

    def __init__(self, block: AbstractContextManager[Any]) -> None:
        self._block = block

    async def __aenter__(self) -> Any:
        return outward(await in_thread(self._block.__enter__))

    async def __aexit__(self, *raised: object) -> Any:
        return await in_thread(self._block.__exit__, *raised)


class _Iterator:
    """`async for` for an iterator of blocking code."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def __aiter__(self) -> "_Iterator":
        return self

    async def __anext__(self) -> Any:
        return outward(await _next(self._iterator))


_END: Final = object()


async def _next(iterator: Any, undo: Callable[[Any], object] | None = None) -> Any:
    item = await in_thread(next, iterator, _END, undo=undo)
    if item is _END:
        raise StopAsyncIteration
    return item


# Methods.


def _is_awaited(function: Any) -> bool:
    if inspect.iscoroutinefunction(function):
        return True
    returned = str(getattr(function, "__annotations__", {}).get("return", ""))
    return any(word in returned for word in ("Awaitable", "Coroutine", "Unwinding"))


def _arguments(
    function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], Lost | None]:
    """The arguments for the blocking method, and what cancels tasks."""
    lost = None
    if "on_lost" in inspect.signature(function).parameters:
        keywords = dict(keywords)
        on_lost = keywords.pop("on_lost", "cancel")
        if on_lost == "cancel":
            keywords["on_lost"] = lost = Lost()
        elif on_lost != "signal":
            keywords["on_lost"] = on_lost
    return (
        tuple(map(inward, arguments)),
        {name: value if isinstance(value, Lost) else inward(value) for name, value in keywords.items()},
        lost,
    )


def _coroutine(name: str, function: Any) -> Any:
    @wraps(function)
    async def method(self: Adapter, *arguments: Any, **keywords: Any) -> Any:
        given, named, lost = _arguments(function, arguments, keywords)
        if name == "close":
            _CLOSED.add(asyncio.current_task())
        return self._outward(await in_thread(lambda: getattr(self._sync, name)(*given, **named)), lost)

    return method


def _plain(name: str, function: Any) -> Any:
    @wraps(function)
    def method(self: Adapter, *arguments: Any, **keywords: Any) -> Any:
        given, named, lost = _arguments(function, arguments, keywords)
        call = partial(getattr(self._sync, name), *given, **named)
        try:
            found = call()
        except BlockingInLoopError:  # the client of a fake has no `allow_in_loop`
            found = beside(call)
        result = self._outward(found, lost)
        return _Iterator(result) if inspect.isasyncgenfunction(function) else result

    return method


def _class_method(name: str, function: Any) -> Any:
    def method(cls: type[Adapter], *arguments: Any, **keywords: Any) -> Any:
        given, named, _ = _arguments(function, arguments, keywords)
        if issubclass(cls, _client()):
            named.setdefault("allow_in_loop", True)
        return outward(getattr(_sync_class(cls), name)(*given, **named))

    return classmethod(method)


def _property(name: str) -> property:
    return property(
        lambda self: self._outward(getattr(self._sync, name)),
        lambda self, value: setattr(self._sync, name, inward(value)),
    )


async def _enter(self: Adapter) -> Any:
    def leave(_: object) -> None:
        self._sync.__exit__(*_GONE)

    entered = await in_thread(self._sync.__enter__, undo=leave)
    if self._lost is not None:
        self._lost.enter(self._sync)
    return self._outward(entered)


async def _exit(self: Adapter, *raised: Any) -> Any:
    if self._lost is not None:
        raised = self._lost.leave(self._sync, raised)
    if type(self).__name__ in ("Client", "Session"):
        _CLOSED.add(asyncio.current_task())
    return await in_thread(self._sync.__exit__, *raised)


def _self(self: Adapter) -> Adapter:
    return self


async def _following(self: Any) -> Any:
    back = self.__dict__.setdefault("_back", [])
    if back:
        return back.pop(0)
    return self._outward(await _next(self._sync, back.append))


def _init(aio: type, sync: type) -> Any:
    """The constructor. Fixtures change the defaults of the client's keywords: they change those of both."""
    function: Any = getattr_static(aio, "__init__")
    options = getattr(function, "__kwdefaults__", None) or {}
    defaults = dict(options)

    def init(self: Adapter, *arguments: Any, **keywords: Any) -> None:
        changed = {name: value for name, value in options.items() if defaults[name] is not value}
        given, named, self._lost = _arguments(function, arguments, changed | keywords)
        if aio is etcd_aio.Client:
            named["allow_in_loop"] = True
            self.loop = asyncio._get_running_loop()
        self._sync = sync(*given, **named)

    init.__kwdefaults__ = options
    return init


_SPECIAL: Final = {"__aenter__": _enter, "__aexit__": _exit, "__aiter__": _self, "__anext__": _following}
_SYNC: Final[dict[type, type]] = {}


def _client() -> type:
    return _ADAPTERS[import_module("etcd_aio.sync").Client]


def _sync_class(adapter: type) -> Any:
    return _SYNC[adapter]


def _members(aio: type, sync: type) -> dict[str, Any]:
    members: dict[str, Any] = {"__init__": _init(aio, sync), "__doc__": aio.__doc__}
    for name in dir(aio):
        found = getattr_static(aio, name)
        behind = _RENAMED.get(name, name)
        if name in _SPECIAL:
            members[name] = _SPECIAL[name]
        elif name in _PLAIN and isinstance(found, FunctionType) and hasattr(sync, name):
            members[name] = _plain(name, found)
        elif name.startswith("_") or name == "backend":
            continue
        elif isinstance(found, classmethod):
            members[name] = _class_method(behind, found.__func__)
        elif isinstance(found, FunctionType):
            members[name] = (_coroutine if _is_awaited(found) else _plain)(behind, found)
        elif isinstance(found, property) or inspect.isdatadescriptor(found):
            members[name] = _property(behind)
    return members


def _found(place: str, separator: str) -> Any:
    module, _, name = place.rpartition(separator)
    return getattr(import_module(module), name)


def functions() -> dict[Any, Any]:
    """The adapter of each public function of asyncio that has a blocking one."""
    made = {}
    for package in [name for name in EXPORTS if name.startswith("etcd_aio.sync")]:
        for name in import_module(package).__all__:
            function = getattr(import_module(package), name)
            aio = getattr(import_module(package.replace(".sync", "", 1)), name, None)
            if isinstance(function, FunctionType) and aio is not None and aio is not function:
                made[aio] = _function(function, aio)
    return made


def _function(function: Any, aio: Any) -> Any:
    @wraps(aio)
    def plain(*arguments: Any, **keywords: Any) -> Any:
        given, named, lost = _arguments(aio, arguments, keywords)
        return outward(function(*given, **named), lost)

    @wraps(aio)
    async def awaited(*arguments: Any, **keywords: Any) -> Any:
        given, named, lost = _arguments(aio, arguments, keywords)
        return outward(await in_thread(partial(function, *given, **named)), lost)

    return awaited if _is_awaited(aio) else plain


def adapters() -> dict[type, type[Adapter]]:
    """The adapter of each asyncio class that has a blocking one."""
    pairs = sorted(
        ((_found(aio, "."), _found(sync, ":")) for aio, sync in PLACES.items()), key=lambda pair: len(pair[0].__mro__)
    )
    made: dict[type, type[Adapter]] = {}
    for aio, sync in pairs:
        assert issubclass(sync, Facade), sync
        bases = tuple(made[base] for base in aio.__mro__[1:] if base in made)[:1] or (Adapter,)
        made[aio] = _ADAPTERS[sync] = type(aio.__name__, bases, _members(aio, sync))
        _SYNC[made[aio]] = sync
    return made
