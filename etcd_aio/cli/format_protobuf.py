"""The format `protobuf`: the bytes of etcd's reply, as text that is printed as these bytes. Pure."""

from etcd_aio.cli.go_text import as_text
from etcd_aio.cli.messages import is_message, message_of
from etcd_aio.cli.results import Shown
from etcd_aio.cli.style import Style


def protobuf(result: Shown, style: Style) -> str | None:
    """The message of the result; None if etcdctl has none for it, as for leases and for reports of several replies."""
    return as_text(bytes(message_of(result))) if is_message(result) else None
