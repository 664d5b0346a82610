"""Message: what every generated message is.

Knows: how to show a message without what it carries. Never knows: any message by name.
"""

import betterproto2


class Message(betterproto2.Message):
    """A protobuf message: a mutable dataclass, whose fields begin as protobuf's defaults."""

    def __repr__(self) -> str:
        # Keys, values, passwords and tokens are bytes and text. A repr ends up in logs and tracebacks; they must not.
        fields = {name: getattr(self, name) for name in self._betterproto.sorted_field_names if self.is_set(name)}
        return f"{type(self).__name__}({', '.join(f'{name}={_shown(value)}' for name, value in fields.items())})"


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
