"""Codec (floor 1): turns messages into bytes and back.

What belongs here: protobuf's encoding, and refusing what does not follow it. What never does: gRPC's five-byte prefix,
compression, or what a message means.

A codec is two functions, `encode` and `decode`; `reference` is the one behind this door. Every codec promises:

- What was decoded encodes to bytes that say the same, fields that its message class does not know included.
- Bytes that are no such message raise `MalformedReplyError`, and a message that cannot be written raises
  `InvalidRequestError`: nothing else is ever raised, and neither shows what the message carries.
"""

from etcd_aio.codec.reference import decode, encode

__all__ = ("decode", "encode")
