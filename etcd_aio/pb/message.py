"""Message: what every generated message is.

Knows: how to show a message without what it carries, and how a message class is completed at its first use. Never
knows: any message by name.

Theory. To make a class a dataclass takes 0.3 ms, since its methods are compiled from text; etcd's hundred messages were
an eighth of the time of `import etcd_aio`, and a program uses ten of them. So the generated code has the `dataclass` of
this module, which only notes the class. Whatever needs a dataclass comes by `__init__` or by `__dataclass_fields__`
(`dataclasses.fields`, and betterproto2 with it). Until it is complete, a class inherits both from `Message`: they
complete it and hand over to what it has then. From there on nothing of this is on its way.
"""

import dataclasses
import threading
from typing import TYPE_CHECKING, Any, Final

import betterproto2

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FIELDS: Final = "__dataclass_fields__"
_incomplete: Final[dict[type, dict[str, bool]]] = {}  # message classes, with the options of their dataclasses
_lock: Final = threading.RLock()  # to complete a class twice would lose the defaults of its fields


def _complete(message_class: type) -> None:
    with _lock:
        for incomplete in _incomplete.keys() & set(message_class.__mro__):
            dataclasses.dataclass(**_incomplete[incomplete])(incomplete)
            del _incomplete[incomplete]


class _LateFields:
    """`__dataclass_fields__` of a class that is not complete."""

    def __get__(self, message: object, message_class: type) -> "Mapping[str, dataclasses.Field[Any]]":
        _complete(message_class)
        for ancestor in message_class.__mro__:
            fields: Mapping[str, dataclasses.Field[Any]] | _LateFields = vars(ancestor).get(_FIELDS, self)
            if not isinstance(fields, _LateFields):
                return fields
        raise AttributeError(_FIELDS)


class Message(betterproto2.Message):
    """A protobuf message: a mutable dataclass, whose fields begin as protobuf's defaults."""

    if not TYPE_CHECKING:
        __dataclass_fields__ = _LateFields()

        def __init__(self, *args, **kwargs):
            _complete(type(self))
            complete = type(self).__init__
            if complete is Message.__init__:
                raise TypeError(f"{type(self).__name__} is not a dataclass")
            complete(self, *args, **kwargs)

    def __repr__(self) -> str:
        # Keys, values, passwords and tokens are bytes and text. A repr ends up in logs and tracebacks; they must not.
        fields = {name: getattr(self, name) for name in self._betterproto.sorted_field_names if self.is_set(name)}
        return f"{type(self).__name__}({', '.join(f'{name}={_shown(value)}' for name, value in fields.items())})"


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(**options: bool) -> "Callable[[type], type]":
        """Note a message class, which becomes a dataclass at its first use."""

        def noted(message_class: type) -> type:
            _incomplete[message_class] = options
            return message_class

        return noted


def _shown(value: object) -> str:
    match value:
        case bytes():
            return f"<{len(value)} bytes>"
        case str():
            return f"<{len(value)} characters>"
        case list():
            return f"<{len(value)} items>"
        case _:
            return repr(value)
