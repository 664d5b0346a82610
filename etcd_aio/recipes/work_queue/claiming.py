"""ClaimTxn: the txn that claims a free job. Pure.

Its conditions are that the item and the delay are those that were seen, and that there is no claim. So it can be sent
again until it is answered: of all copies one is applied, unless the job was freed since.
"""

from etcd_aio import Key, Op, TxnResult, op
from etcd_aio.recipes.work_queue.jobs import FreeJob, JobKeys, Kind


class ClaimTxn:
    """The txn that claims a free job, and reads the claim, by `look`, if the conditions do not hold."""

    def __init__(self, keys: JobKeys, free: FreeJob, owner: bytes, lease: int) -> None:
        self.name = free.job
        item, claim, tries, delay = (
            keys.of(kind, free.job) for kind in (Kind.ITEM, Kind.CLAIM, Kind.TRIES, Kind.DELAY)
        )
        self._item = op.get(item)
        self._tries = op.put(tries, owner, prev_kv=True)
        self.look = op.get(claim)
        when = [Key(item).mod_revision == free.revision, Key(claim).missing, Key(delay).mod_revision == free.delay]
        then: list[Op] = [self._item, op.put(claim, owner, lease=lease), self._tries]
        if free.delay:
            then.append(op.delete(delay))
        self.txn = op.txn(when=when, then=then, otherwise=[self.look])

    def claimed(self, result: TxnResult) -> tuple[bytes, int]:
        """The payload of the job, and which attempt this is, by an answer that says that the conditions held."""
        kv, before = result[self._item], result[self._tries].prev_kv
        return b"" if kv is None else kv.value, 1 if before is None else before.version + 1
