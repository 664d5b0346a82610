"""The types of the codec: what can be decoded, and the functions that are generated."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from etcd_aio.pb import Message
    from etcd_aio.types import Result

Decodable = TypeVar("Decodable", bound="Message | Result")

Function: TypeAlias = Callable[..., Any]
"""Generated functions have no more specific type."""
