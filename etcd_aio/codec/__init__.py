"""Codec (floor 1): turns messages into bytes and back.

What belongs here: protobuf's encoding, and refusing what does not follow it. What never does: gRPC's five-byte prefix,
compression, or what a message means.

A codec is two functions, `encode` and `decode`. Behind this door stands `compiled`, which writes straight-line Python
for each message class when it is first met, and reads replies into results without a message in between. `reference`,
betterproto2's own, judges it: both promise the same. A `Collector` is `decode` for messages that come in pieces.

- What was decoded encodes to bytes that say the same, fields that its message class does not know included.
- Bytes that are no such message raise `MalformedReplyError`, and a message that cannot be written raises
  `InvalidRequestError`: nothing else is ever raised, and neither shows what the message carries.
"""

from etcd_aio.codec.compiled import decode, encode, writers
from etcd_aio.codec.fields import MAX_DEPTH
from etcd_aio.codec.incremental import Collector
from etcd_aio.codec.leading import leading_watch_id
from etcd_aio.codec.targets import Decodable, header_of, message_class_of

__all__ = (
    "MAX_DEPTH",
    "Collector",
    "Decodable",
    "decode",
    "encode",
    "header_of",
    "leading_watch_id",
    "message_class_of",
    "writers",
)
