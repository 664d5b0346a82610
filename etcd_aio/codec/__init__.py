"""Codec (layer 1): encodes messages to protobuf's wire format, and decodes them.

`encode` and `decode` are straight-line Python that is generated for each message class at first use. Replies are
decoded directly into results, without a message in between. `IncrementalDecoder` decodes a message that arrives in
pieces. gRPC's framing and compression are the transport's.

- Unknown fields of a message survive decoding and encoding.
- Malformed bytes raise `MalformedReplyError`, and an invalid message raises `InvalidRequestError`. Nothing else is
  raised, and neither error contains any part of the message.
"""

from etcd_aio.codec.compiled import decode, encode, writers
from etcd_aio.codec.fields import MAX_DEPTH
from etcd_aio.codec.incremental import IncrementalDecoder, leading_watch_id
from etcd_aio.codec.targets import Decodable, header_of, message_class_of

__all__ = (
    "MAX_DEPTH",
    "Decodable",
    "IncrementalDecoder",
    "decode",
    "encode",
    "header_of",
    "leading_watch_id",
    "message_class_of",
    "writers",
)
