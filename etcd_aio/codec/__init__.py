"""Codec: encodes messages to protobuf's wire format, and decodes them.

`encode` and `decode` are straight-line Python that is generated for each message class at first use. Replies are
decoded directly into results, without a message in between. `IncrementalDecoder` decodes a message that arrives in
pieces. A compiled accelerator reads runs of key-values and events, where there is one; `BACKEND` says so. gRPC's
framing and compression are the transport's.

- Unknown fields of a message survive decoding and encoding.
- Malformed bytes raise `MalformedReplyError`, and an invalid message raises `InvalidRequestError`. Nothing else is
  raised, and neither error contains any part of the message.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.codec.compiled import decode as decode
    from etcd_aio.codec.compiled import encode as encode
    from etcd_aio.codec.compiled import header_of as header_of
    from etcd_aio.codec.compiled import writers as writers
    from etcd_aio.codec.decodable import Decodable as Decodable
    from etcd_aio.codec.encoder import argument_name as argument_name
    from etcd_aio.codec.fields import Field as Field
    from etcd_aio.codec.fields import fields_of as fields_of
    from etcd_aio.codec.generated.writers import write_Compare as write_Compare
    from etcd_aio.codec.generated.writers import write_DeleteRangeRequest as write_DeleteRangeRequest
    from etcd_aio.codec.generated.writers import write_PutRequest as write_PutRequest
    from etcd_aio.codec.generated.writers import write_RangeRequest as write_RangeRequest
    from etcd_aio.codec.generated.writers import write_RequestOp as write_RequestOp
    from etcd_aio.codec.generated.writers import write_StatusRequest as write_StatusRequest
    from etcd_aio.codec.generated.writers import write_TxnRequest as write_TxnRequest
    from etcd_aio.codec.generated.writers import write_WatchCreateRequest as write_WatchCreateRequest
    from etcd_aio.codec.generated.writers import write_WatchRequest as write_WatchRequest
    from etcd_aio.codec.incremental import IncrementalDecoder as IncrementalDecoder
    from etcd_aio.codec.speedups import BACKEND as BACKEND
    from etcd_aio.codec.targets import message_class_of as message_class_of
    from etcd_aio.codec.watch_replies import WatchReplyDecoder as WatchReplyDecoder
    from etcd_aio.codec.watch_replies import leading_watch_id as leading_watch_id
    from etcd_aio.codec.wire import MAX_DEPTH as MAX_DEPTH
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
