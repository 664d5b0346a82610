"""SlotPool: the slots of an `ExactlyOnce`, and the lease that all of them are attached to."""

import asyncio
from contextlib import suppress
from enum import Enum
from typing import Final

from etcd_aio import EtcdTimeoutError
from etcd_aio.base import HandOver, start_background_task
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import ClientUsageError, LeaseNotFoundError, PermissionDeniedError
from etcd_aio.lease import KeptLease
from etcd_aio.once.guarded import create_slot, found_slot
from etcd_aio.once.single_flight import SingleFlight, seconds_left
from etcd_aio.once.slot import Slot, SlotState

_REVOKE_SECONDS: Final = 2.0  # of a lease that is lost here, and may still exist on the server


class SlotGeneration:
    """The slots of one lease. When the lease is lost, none of them is used any more.

    Attributes:
        lease: the lease.
        lease_id: its id.
        free: the slots that no write uses.
    """

    __slots__ = ("_next_index", "_prefix", "free", "lease", "lease_id")

    def __init__(self, lease: KeptLease, prefix: bytes) -> None:
        self.lease = lease
        self.lease_id = lease.id
        self.free: list[Slot] = []
        self._prefix = b"%b%x/" % (prefix, self.lease_id & (2**64 - 1))
        self._next_index = 0

    def new_slot(self) -> Slot:
        """A slot with a key that no other slot has had."""
        slot = Slot(b"%b%d" % (self._prefix, self._next_index), self.lease_id)
        self._next_index += 1
        return slot


class _SlotTurn(Enum):
    """Outcomes of a wait that are not a slot."""

    CREATE = "a slot is gone, so the caller may create another one"
    OVER = "the time is over, or the pool is closed"


class SlotPool:
    """Slots, created on demand. A caller without a free one waits for its turn.

    Args:
        store: the client.
        limit: the most slots.
        ttl: of the lease, in seconds.
        prefix: of the keys of slots.
        timeout: seconds for granting a lease.

    Attributes:
        count: how many slots exist or are being created.
        lease_losses: how often the lease was lost.
    """

    def __init__(self, store: StoreCalls, *, limit: int, ttl: int, prefix: bytes, timeout: float | None) -> None:
        self._store = store
        self._limit = limit
        self._ttl = ttl
        self._prefix = prefix
        self._timeout = timeout
        self._generation: SlotGeneration | None = None
        self._granting = SingleFlight(self._begin_generation, "lease")
        self._turns: HandOver[Slot | _SlotTurn] = HandOver(self._take_back)
        self._revoking: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self.count = 0
        self.lease_losses = 0

    @property
    def free_count(self) -> int:
        """How many slots no write uses."""
        return 0 if self._generation is None else len(self._generation.free)

    def take_free(self) -> Slot | None:
        """Take a slot for a write, if one is free, in which case no caller waits; its state is then BUSY."""
        generation = self._generation
        if generation is None or not generation.free:
            return None
        slot = generation.free.pop()  # the one that was used last: the others stay idle
        slot.move(SlotState.BUSY)
        return slot

    async def take(self, deadline: float) -> Slot:
        """Take a slot for a write, in the order of the calls; its state is then BUSY.

        Raises:
            EtcdTimeoutError: no slot was free in time.
            ClientUsageError: the pool is closed.
            EtcdError: a lease could not be granted, or a slot could not be created.

        Cancellation: the slot, or the turn to create one, goes to the next caller.
        """
        self._check_open()
        taken = self.take_free()
        if taken is not None:
            return taken
        slot: Slot | _SlotTurn
        if self.count < self._limit:
            self.count += 1
            slot = _SlotTurn.CREATE
        else:
            slot = await self._turns.wait(deadline, _SlotTurn.OVER)
        if slot is _SlotTurn.CREATE:
            slot = await self._create(deadline)
        if slot is _SlotTurn.OVER:
            self._check_open()
            raise EtcdTimeoutError(f"none of the {self._limit} slots for exactly-once writes was free in time")
        slot.move(SlotState.BUSY)
        return slot

    def put_back(self, slot: Slot) -> None:
        """A write has ended, and its slot is free or gone."""
        generation = self._generation
        if slot.state is SlotState.FREE and (generation is None or generation.lease_id != slot.lease):
            slot.move(SlotState.GONE)
        if slot.state is SlotState.GONE:
            self._give_up_place()
        elif generation is not None and not self._turns.give(slot):
            generation.free.append(slot)

    async def is_lost(self, slot: Slot, deadline: float) -> bool:
        """Whether the lease of a slot is gone on the server; if it is, its slots are not used any more.

        Raises:
            EtcdError: the server could not be asked.
        """
        generation = self._generation
        if generation is None or generation.lease_id != slot.lease:
            return True
        found = await self._store.leases.time_to_live(slot.lease, timeout=seconds_left(deadline))
        if found.is_expired:
            self._end_generation(generation)
        return found.is_expired

    async def close(self) -> None:
        """Revoke the lease, which kills every copy of every write, and end the waits. Takes 2 seconds at most."""
        self._is_closed = True
        while self._turns.give(_SlotTurn.OVER):
            pass
        self._granting.cancel()
        generation, self._generation = self._generation, None
        if generation is not None:
            self.count -= len(generation.free)
            await generation.lease.close()
        if self._revoking:
            await asyncio.wait(self._revoking, timeout=_REVOKE_SECONDS)

    # Slots.

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientUsageError("the block of exactly_once() has ended")

    async def _create(self, deadline: float) -> Slot:
        """Create a slot, in a place that is counted already."""
        slot = None
        try:
            while True:
                self._check_open()
                generation = self._generation or await self._granting.result(deadline)
                creating = generation.new_slot()
                try:
                    result = await self._store.do(create_slot(creating), timeout=seconds_left(deadline), retry="always")
                except LeaseNotFoundError:
                    self._end_generation(generation)
                    continue
                except PermissionDeniedError as error:
                    text = f"exactly-once writes need to read and write prefix={self._prefix!r}"
                    error.detail = f"{error.detail}; {text}" if error.detail else text
                    raise
                found = None if result else found_slot(result)
                creating.move(SlotState.FREE, result.revision if found is None else found.mod_revision)
                slot = creating
                return slot
        finally:
            # A slot that may have been created all the same is not used: its key goes with the lease.
            if slot is None:
                self._give_up_place()

    def _take_back(self, got: Slot | _SlotTurn) -> None:
        """A caller was cancelled when it had its turn."""
        if isinstance(got, Slot):
            self.put_back(got)
        elif got is _SlotTurn.CREATE:
            self._give_up_place()

    def _give_up_place(self) -> None:
        """A slot is gone: the next caller that waits may create another one."""
        if not self._turns.give(_SlotTurn.CREATE):
            self.count -= 1

    # The lease.

    async def _begin_generation(self) -> SlotGeneration:
        lease = await self._store.leases.kept(self._ttl, timeout=self._timeout).begin()
        self._generation = generation = SlotGeneration(lease, self._prefix)
        lease.on_end = lambda _: self._end_generation(generation)
        return generation

    def _end_generation(self, generation: SlotGeneration) -> None:
        """The lease is lost: no slot of it is used any more. Writes under way find out by themselves."""
        if self._generation is not generation:
            return
        self._generation = None
        self.lease_losses += 1
        while generation.free:
            generation.free.pop().move(SlotState.GONE)
            self._give_up_place()
        # Perhaps it is lost only here, since no renewal was answered: the server must not keep its keys.
        task = start_background_task(self._revoke(generation.lease), name="etcd_aio once revoke")
        self._revoking.add(task)
        task.add_done_callback(self._revoking.discard)

    async def _revoke(self, lease: KeptLease) -> None:
        with suppress(Exception):
            await lease.revoke(timeout=_REVOKE_SECONDS)
