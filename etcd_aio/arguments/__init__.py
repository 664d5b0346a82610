"""Arguments: the checks that all calls share, made before anything is sent."""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.arguments.blocks import cancels_block as cancels_block
    from etcd_aio.arguments.blocks import checked_margin as checked_margin
    from etcd_aio.arguments.checks import MIN_INT64 as MIN_INT64
    from etcd_aio.arguments.checks import KeyLike as KeyLike
    from etcd_aio.arguments.checks import LeaseLike as LeaseLike
    from etcd_aio.arguments.checks import ValueLike as ValueLike
    from etcd_aio.arguments.checks import check_text as check_text
    from etcd_aio.arguments.checks import encode_key as encode_key
    from etcd_aio.arguments.checks import finite_seconds as finite_seconds
    from etcd_aio.arguments.checks import flag as flag
    from etcd_aio.arguments.checks import is_encodable as is_encodable
    from etcd_aio.arguments.checks import lease_id as lease_id
    from etcd_aio.arguments.checks import one_of as one_of
    from etcd_aio.arguments.checks import parse_word as parse_word
    from etcd_aio.arguments.checks import to_bytes as to_bytes
    from etcd_aio.arguments.checks import whole_number as whole_number
    from etcd_aio.arguments.functions import check_async_function as check_async_function
    from etcd_aio.arguments.functions import check_awaitable as check_awaitable
    from etcd_aio.arguments.functions import check_blocking_function as check_blocking_function
    from etcd_aio.arguments.host_port import join_host_port as join_host_port
    from etcd_aio.arguments.host_port import split_host_port as split_host_port
else:
    _INTERNAL = (
        *("MIN_INT64", "cancels_block", "check_async_function", "check_awaitable", "checked_margin"),
        *("check_blocking_function", "is_encodable", "join_host_port", "one_of", "parse_word", "split_host_port"),
    )
    __getattr__, __dir__, __all__ = late_names(__name__, _INTERNAL)
