"""Checkpoint: the key at the destination with the progress of a mirror, and through which it writes. Pure.

It is a slot. Each txn of a mirror has the condition "the checkpoint's mod_revision is still m" and puts the checkpoint,
so of all copies of a txn that travel, at most one is applied, and none after another txn has moved the checkpoint: m
never comes back, whether the key is put again or deleted and created again. The value names its writer and the number
of the write. So the answer to any copy shows the outcome of the txn:

    answer                                  meaning
    the condition held                      applied now
    the checkpoint has our name and number  an earlier copy was applied, at the checkpoint's mod_revision
    our name, another number                the destination went back to a backup: continue from that checkpoint
    another name                            another mirror writes it; or it is dead, and this was its last write
    there is no checkpoint                  it was deleted: nothing is known of the destination any more

Only a base is copied by txns that do not put the checkpoint, so that several can be under way. It begins by a put of
the checkpoint, which ends all that came before, and ends by another one. In between each key is written once, so a copy
that is applied twice changes nothing. No copy is applied after the end, since the condition does not hold any more.
"""

import json
from dataclasses import asdict
from dataclasses import fields as dataclass_fields
from enum import Enum
from typing import Self

from etcd_aio import KeyValue
from etcd_aio.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The value of a checkpoint.

    Attributes:
        cluster_id: of the source.
        prefix: of the mirrored keys, in the client of the source.
        to_prefix: of the copies, in the client of the destination.
        revision: of the source; the destination has every change up to it. 0 while the first copy is under way.
        is_complete: whether it has nothing of later revisions. False between the txns of a revision that is too large
            for one, and during the first copy.
        writer: the random name of the mirror that wrote it last.
        number: of that write, counted from 1 by each mirror.
    """

    cluster_id: int
    prefix: bytes
    to_prefix: bytes
    revision: int = 0
    is_complete: bool = False
    writer: str = ""
    number: int = 0

    def encode(self) -> bytes:
        """The value of the key."""
        texts = {"prefix": self.prefix.decode("latin-1"), "to_prefix": self.to_prefix.decode("latin-1")}
        return json.dumps(asdict(self) | {"cluster_id": f"{self.cluster_id:x}"} | texts).encode()

    @classmethod
    def parse(cls, value: bytes) -> Self | None:
        """The checkpoint that a value has; None if it has none."""
        try:
            fields = json.loads(value)
            fields["cluster_id"] = int(fields["cluster_id"], 16)
            for name in ("prefix", "to_prefix"):
                fields[name] = fields[name].encode("latin-1")
            made = cls(**{each.name: fields[each.name] for each in dataclass_fields(cls)})
        except (ValueError, LookupError, TypeError, AttributeError):
            return None
        kinds = (type(made.revision), type(made.is_complete), type(made.writer), type(made.number))
        return made if kinds == (int, bool, str, int) else None

    def resumes(self, cluster_id: int, prefix: bytes, to_prefix: bytes, revision: int) -> bool:
        """Whether a mirror with these prefixes can continue from here, by the id and the revision of the source now."""
        is_same = (self.cluster_id, self.prefix, self.to_prefix) == (cluster_id, prefix, to_prefix)
        return is_same and 0 < self.revision <= revision


class CheckpointVerdict(Enum):
    """The meaning of an answer to a copy of a write; see above."""

    APPLIED = "an earlier copy was applied"
    WENT_BACK = "the destination went back"
    MOVED = "another mirror has written once"
    CONFLICT = "another mirror writes"
    MISSING = "the checkpoint was deleted"


def judge(write: Checkpoint, before: Checkpoint, found: KeyValue | None) -> CheckpointVerdict:
    """Judge a write whose condition did not hold by the checkpoint as it is found now.

    The condition is about the checkpoint before, which has no writer if there was none.
    """
    now = None if found is None else Checkpoint.parse(found.value)
    if now is None:
        return CheckpointVerdict.MISSING
    if now.writer == write.writer:
        return CheckpointVerdict.APPLIED if now.number == write.number else CheckpointVerdict.WENT_BACK
    # The first write of a run may meet one that was still under way when its mirror died. That was made on the same
    # condition, so there is no more than one: the next by its writer, or the first of another that was just started.
    follows = now.number == (before.number + 1 if now.writer == before.writer else 1)
    is_last = before.writer != write.writer and follows
    return CheckpointVerdict.MOVED if is_last else CheckpointVerdict.CONFLICT
