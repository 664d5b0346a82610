"""Compares the decoders on mutated replies: the reference, generated Python, and the accelerator; whole and in pieces.

Each message is decoded whole and in pieces by each back end. The outcome of a way, a value or the text of a refusal, is
the same for all back ends; and the whole and its pieces say the same.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final, TypeAlias

from etcd_aio import codec, pb
from etcd_aio.codec import compiled
from etcd_aio.codec.speedups import Accelerator
from etcd_aio.errors import MalformedReplyError
from etcd_aio.types import DeleteResult, PutResult, RangeChunk, RangeResult, TxnResult, WatchReply
from tests.support import reference_codec as reference
from tests.support import results
from tests.support.codec_backends import using

Outcome: TypeAlias = object
"""A value; or a text, the refusal."""
Build: TypeAlias = Callable[[Any], Any]

KINDS: Final[dict[Any, tuple[type[pb.Message], Build]]] = {
    RangeResult: (pb.RangeResponse, results.found),
    PutResult: (pb.PutResponse, results.put),
    RangeChunk: (pb.RangeStreamResponse, results.chunk),
    DeleteResult: (pb.DeleteRangeResponse, results.delete),
    TxnResult: (pb.TxnResponse, results.txn),
    WatchReply: (pb.WatchResponse, results.watch_reply),
}
TELLING: Final = (0, 1, 8, 10, 16, 18, 24, 26, 32, 42, 48, 90, 127, 128, 255)  # tags, and the edges of varints
MUTANTS_OF_EACH: Final = 40


class Disagreement(AssertionError):  # noqa: N818 - a failed comparison
    """Two decoders differ; the text says on which message."""


def messages(random: Random) -> Iterator[tuple[Any, bytes]]:
    """Mutated replies without an end, each with the class of its result."""
    while True:
        kind = random.choice(list(KINDS))
        sound = codec.encode(_reply(kind, random))
        yield kind, sound
        for _ in range(MUTANTS_OF_EACH):
            yield kind, _mutated(sound, random)


def _reply(kind: Any, random: Random) -> pb.Message:
    header = pb.ResponseHeader(cluster_id=1 << 63, member_id=random.choice((0, 7)), revision=5, raft_term=1 << 40)
    kvs = [_key_value(random) for _ in range(random.randrange(4))]
    found = pb.RangeResponse(header=header, kvs=kvs, more=random.random() < 0.3, count=len(kvs))
    if kind is RangeResult:
        return found
    if kind is PutResult:
        return pb.PutResponse(header=header, prev_kv=kvs[0] if kvs else None)
    if kind is RangeChunk:
        return pb.RangeStreamResponse(range_response=found)
    deleted = pb.DeleteRangeResponse(header=header, deleted=len(kvs), prev_kvs=kvs)
    if kind is DeleteResult:
        return deleted
    if kind is TxnResult:
        both = [pb.ResponseOp(response_range=found), pb.ResponseOp(response_delete_range=deleted)]
        return pb.TxnResponse(header=header, succeeded=True, responses=both)
    return pb.WatchResponse(header=header, watch_id=1, events=[_event(kv, random) for kv in kvs])


def _key_value(random: Random) -> pb.KeyValue:
    return pb.KeyValue(
        key=random.randbytes(random.choice((0, 1, 5, 127, 128, 200))),
        create_revision=random.choice((0, 1, 127, 128, 1 << 20, 1 << 40, -1)),
        mod_revision=random.choice((0, 3, 300, 1 << 35)),
        version=random.choice((0, 1, 1 << 14)),
        value=random.randbytes(random.choice((0, 1, 100, 127, 128, 300))),
        lease=random.choice((0, 7, 1 << 62, -1)),
    )


def _event(kv: pb.KeyValue, random: Random) -> pb.Event:
    kind = random.choice((pb.EventEventType.PUT, pb.EventEventType.DELETE))
    return pb.Event(type=kind, kv=kv, prev_kv=_key_value(random) if random.random() < 0.4 else None)


def _mutated(sound: bytes, random: Random) -> bytes:
    data = bytearray(sound)
    for _ in range(random.randrange(1, 4)):
        if not data:
            break
        at, choice = random.randrange(len(data)), random.random()
        if choice < 0.5:
            data[at] = random.choice((*TELLING, random.randrange(256)))
        elif choice < 0.65:
            del data[at : at + random.randrange(1, 4)]
        elif choice < 0.8:
            data[at:at] = random.randbytes(random.randrange(1, 4))
        elif choice < 0.9:
            data[at:at] = data[at : at + random.randrange(1, 40)]  # a field, or half of one, twice
        else:
            del data[at:]
    return bytes(data)


def compare(
    backends: Sequence[Accelerator | None], random: Random, count: int, *, reference_every: int = 1
) -> tuple[int, int]:
    """Decode `count` mutated replies in every way.

    Args:
        backends: the back ends to compare.
        random: the source of the messages and of the cuts.
        count: how many messages.
        reference_every: compare with the reference, which is slow, one message in so many.

    Returns:
        tuple[int, int]: how many of them were decoded, and how many were refused.

    Raises:
        Disagreement: two outcomes differ.
    """
    decoded = refused = 0
    source = messages(random)
    # In batches, so that a back end is seldom exchanged.
    for begin in range(0, count, 1_000):
        batch = [(*next(source), random.random(), random.random()) for _ in range(min(1_000, count - begin))]
        all_outcomes = []
        for accelerator in backends:
            with using(accelerator):
                all_outcomes.append([outcomes(*one) for one in batch])
        for number, (kind, data, *_) in enumerate(batch):
            first, *others = [found[number] for found in all_outcomes]
            if any(other != first for other in others):
                raise Disagreement(f"{kind.__name__} of {data!r}: {first}, {others}")
            whole, pieces = first
            is_refused = isinstance(whole, str)
            if isinstance(pieces, str) != is_refused or not (is_refused or whole == pieces):
                raise Disagreement(f"{kind.__name__} of {data!r}: {whole} whole, {pieces} in pieces")
            if number % reference_every == 0:
                expected = by_reference(kind, data)
                if (expected is None) != is_refused or not (is_refused or whole == expected):
                    raise Disagreement(f"{kind.__name__} of {data!r}: {whole}, and by the reference {expected}")
            decoded, refused = decoded + (not is_refused), refused + is_refused
    return decoded, refused


def outcomes(kind: Any, data: bytes, first: float, second: float) -> tuple[Outcome, Outcome]:
    """What the present back end makes of a message: whole, and cut at two shares of its size."""
    try:
        whole: Outcome = compiled.decode(kind, data)
    except MalformedReplyError as error:
        whole = str(error)
    collector = codec.IncrementalDecoder[Any](kind)
    cuts = sorted((int(first * len(data)), int(second * len(data))))
    for begin, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        collector.feed(data[begin:end])
        collector.work()
    try:
        return whole, collector.finish()
    except MalformedReplyError as error:
        return whole, str(error)


def by_reference(kind: Any, data: bytes) -> object | None:
    """What the reference reads; None if it refuses."""
    message_class, build = KINDS[kind]
    try:
        result: object = build(reference.decode(message_class, data))
    except (MalformedReplyError, KeyError):
        return None
    return result
