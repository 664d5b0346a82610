"""The events of a watch."""

from typing import Any

from etcd_aio.compat.etcd3 import etcdrpc


class Event:
    """One change of one key.

    It has the attributes of the key after the change (`value`, `version`, `create_revision`, `mod_revision`, `lease`),
    and with `prev_` before their names those of the key before it, if the watch has `prev_kv=True`.
    """

    def __init__(self, event: etcdrpc.Event) -> None:
        self.key = event.kv.key
        self._event = event

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of copies and pickles, which have no event yet
            raise AttributeError(name)
        if name.startswith("prev_"):
            return getattr(self._event.prev_kv, name.removeprefix("prev_"))
        return getattr(self._event.kv, name)

    def __str__(self) -> str:
        return f"{type(self)} key={self.key!r} value={self.value!r}"


class PutEvent(Event):
    """The key was put."""


class DeleteEvent(Event):
    """The key was deleted, or has expired with its lease."""


def new_event(event: etcdrpc.Event) -> Event:
    """The event of a message."""
    return DeleteEvent(event) if event.type == etcdrpc.Event.DELETE else PutEvent(event)
