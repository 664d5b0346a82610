"""Facade: a blocking object in front of one of asyncio. See `release/facade/` for what makes the classes.

The class of a facade is found by the class of the object behind it. A facade that holds nothing can be made again in a
process that was forked: it remembers how it was made.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar, Final, NoReturn, Self

from etcd_aio.base.blocking import Blocking
from etcd_aio.errors import ForkedError
from etcd_aio.portal.loop_thread import making_again
from etcd_aio.portal.portal import Portal

_PLACES: Final[dict[str, str]] = {}  # "module.Class" of asyncio -> "module:Class" of the facade
_CLASSES: Final[dict[type, "type[Facade] | None"]] = {}  # those that were looked up


class Facade(Blocking):
    """Base of all blocking classes.

    Attributes:
        _survives_fork: whether it holds nothing, so that a forked child may use it.
    """

    _survives_fork: ClassVar[bool] = False

    _object: Any
    _portal: Portal
    _made_by: "Callable[[], Facade] | None"

    @property
    def _aio(self) -> Any:
        """The object of asyncio."""
        if self._portal.is_forked:
            self._make_again()
        return self._object

    def _make_again(self) -> None:
        """In a forked child, make it as it was made in the parent.

        Raises:
            ForkedError: it is not known how, or it holds something that is the parent's.
        """
        if not self._survives_fork or self._made_by is None:
            raise ForkedError(
                f"this {type(self).__name__} was made before os.fork(): make a new one in the child process"
            )
        with making_again():
            if self._portal.is_forked:  # else another thread has made it meanwhile
                made = self._made_by()
                self._object, self._portal = made._object, made._portal

    def _run(self, function: Callable[..., object], /, *arguments: object, **keywords: object) -> Any:
        """Run a function of the object in the loop's thread, and wait for its result."""
        return self._portal.call(function, arguments, keywords)

    def _end(self, aclose: Callable[[], object]) -> None:
        """Close the object, unless it has ended with the loop's thread: the last client was closed before."""
        if not self._portal.thread.is_over:
            self._run(aclose)

    def _made(self, name: str, /, *arguments: object, **keywords: object) -> Any:
        """Call a method of the object that makes another one, and get the facade of that.

        Args:
            name: the method.
            arguments: facades are replaced by what is behind them.
            keywords: facades are replaced, too.
        """

        def make() -> Facade:
            method = getattr(self._aio, name)
            given, named = map(unwrap, arguments), {word: unwrap(value) for word, value in keywords.items()}
            facade: Facade = self._wrap(self._run(method, *given, **named))
            return facade

        facade = make()
        facade._made_by = make
        return facade

    def _part(self, name: str) -> Any:
        """The facade of an attribute of the object.

        Args:
            name: of the attribute.
        """

        def make() -> Facade:
            facade: Facade = self._wrap(getattr(self._aio, name))
            return facade

        facade = make()
        facade._made_by = make
        return facade

    def _construct(
        self, class_: Callable[..., object], first: "Facade", /, *arguments: object, **keywords: object
    ) -> None:
        """Be the facade of a new object.

        Args:
            class_: of asyncio.
            first: its first argument, a store.
            arguments: facades are replaced by what is behind them.
            keywords: facades are replaced, too.
        """
        facade_of_store(first)

        def make() -> Facade:
            store = first._aio
            given, named = map(unwrap, arguments), {word: unwrap(value) for word, value in keywords.items()}
            made = type(self).__new__(type(self))
            made._portal = first._portal
            made._object = made._run(class_, store, *given, **named)
            return made

        made = make()
        self._object, self._portal, self._made_by = made._object, made._portal, make

    def _wrap(self, value: Any) -> Any:
        """The facade of an object that has one, also in tuples and lists; other values are returned as they are."""
        if type(value) is tuple or type(value) is list:
            return type(value)(map(self._wrap, value))
        class_ = facade_class(type(value))
        if class_ is None:
            return value
        if value is self._object:
            return self
        return class_._around(value, self._portal)

    @classmethod
    def _around(cls, behind: object, portal: Portal) -> Self:
        """The facade of an object that is there."""
        facade = cls.__new__(cls)
        facade._object, facade._portal, facade._made_by = behind, portal, None
        return facade

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} of etcd_aio.sync cannot be copied or pickled: make a new one")

    def __repr__(self) -> str:
        return f"<sync {self._object!r}>"


def unwrap(value: Any) -> Any:
    """The object behind a facade; other values are returned as they are.

    Raises:
        TypeError: it is an object of asyncio that has a facade.
    """
    if isinstance(value, Facade):
        return value._aio
    if _place_of(type(value)) is not None:  # the class of an argument may be made for it alone: it is not kept
        kind = type(value).__name__
        raise TypeError(f"got a {kind} of asyncio, and this is blocking code: use etcd_aio.sync for it, too")
    return value


def facade_of_store(store: object) -> Facade:
    """The argument of a user that must be a blocking client or store.

    Raises:
        TypeError: it is something else.
    """
    unwrap(store)  # refuses a client of asyncio
    if not isinstance(store, Facade):
        raise TypeError(f"client must be a client or a store of etcd_aio.sync, got {type(store).__name__}")
    return store


def register(places: Mapping[str, str]) -> None:
    """Say which classes have facades.

    Args:
        places: "module.Class" of asyncio, and "module:Class" of its facade, which is imported at the first use.
    """
    _PLACES.update(places)


def facade_class(class_: type) -> "type[Facade] | None":
    """The class of the facades of objects of a class, if they have one."""
    try:
        return _CLASSES[class_]
    except KeyError:
        found = None
        place = _place_of(class_)
        if place is not None:
            module, _, name = place.partition(":")
            found = getattr(import_module(module), name)
        _CLASSES[class_] = found
        return found


def _place_of(class_: type) -> str | None:
    """Where the class of its facades is; None if it has none."""
    for base in class_.__mro__:
        place = _PLACES.get(f"{base.__module__}.{base.__qualname__}")
        if place is not None:
            return place
    return None
