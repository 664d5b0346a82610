"""The load: reads, writes, scans and a counter through one client, and an account of the outcome of each call.

Every write has its own key, so the version of a key is the number of times that its write was applied. Every read asks
for the newest acknowledged write, so it also detects stale replies.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

from etcd_aio import Client, EtcdError, Key, PutResult, RangeResult, TxnResult, op

BEAT = 0.04  # seconds between the starts of a write and some reads, whether or not the last ones have ended
READS_PER_BEAT = 6
CALLS_PER_SECOND = (1 + READS_PER_BEAT) / BEAT
TXN_PAUSE = 0.1
SCAN_PAUSE = 0.5
CATALOG = 250  # keys for the scans, in pages of 100

Written = TypeVar("Written", PutResult, TxnResult)

WRITES = "demo/writes/"
COUNTER = "demo/counter"


@dataclass
class Account:
    """The outcome of the calls that began in one act.

    Attributes:
        reads, writes: calls that have ended; a page of a scan is a read, a step of the counter is a write.
        read_errors: errors of reads.
        stale: reads that did not find a write that had been acknowledged before.
        unknown: writes that ended with `maybe_applied`: number and name of the error.
        unknown_steps: steps of the counter that ended with `maybe_applied`.
        refused: errors of writes that were not applied.
        longest_read, longest_write: in seconds, failed calls included.
        moved: failed attempts that were retried on another member.
        in_flight: calls that have not ended.
        is_idle: set while no call is in flight.
    """

    reads: int = 0
    writes: int = 0
    read_errors: list[str] = field(default_factory=list)
    stale: int = 0
    unknown: dict[int, str] = field(default_factory=dict)
    unknown_steps: int = 0
    refused: list[str] = field(default_factory=list)
    longest_read: float = 0.0
    longest_write: float = 0.0
    moved: int = 0
    in_flight: int = 0
    is_idle: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.is_idle.set()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Count a call as in flight inside the block."""
        self.in_flight += 1
        self.is_idle.clear()
        try:
            yield
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self.is_idle.set()


@dataclass(frozen=True)
class Findings:
    """The contents of the store at the end, compared with the results of the calls."""

    acknowledged: int
    missing: int
    applied_twice: int
    refused: int
    refused_but_there: int
    unknown: int
    unknown_applied: int
    counter: int
    counter_is_right: bool

    @property
    def are_good(self) -> bool:
        """Whether every promise was kept."""
        return not (self.missing or self.applied_twice or self.refused_but_there) and self.counter_is_right


class Load:
    """Makes calls until `stop`; a call belongs to the account that is open when the call begins.

    Calls begin at a steady rate, like those of many independent users: a slow reply does not delay the next call.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.account = Account()
        self.accounts = [self.account]
        self.answers: Counter[int] = Counter()  # by member id
        self._newest = -1
        self._acknowledged: set[int] = set()
        self._refused: set[int] = set()
        self._steps = 0
        self._ended = 0
        self._moved = 0
        self._is_stopping = False

    async def close_account(self) -> None:
        """Open the next account, and wait until every call of the last one has ended."""
        account, self.account = self.account, Account()
        self.accounts.append(self.account)
        await account.is_idle.wait()
        # The attempts beyond one for each call.
        moved = sum(stats.attempts for stats in self.client.statistics()) - self._ended
        account.moved, self._moved = max(moved - self._moved, 0), moved

    def stop(self) -> None:
        """Begin no more calls. `run` returns when the calls in flight have ended."""
        self._is_stopping = True

    async def prepare(self) -> None:
        """Write the keys for the scans."""
        for start in range(0, CATALOG, 50):
            puts = (op.put(f"demo/catalog/{number:03}", f"item {number}") for number in range(start, start + 50))
            await self.client.txn().then(*puts).commit()
            self._ended += 1

    async def run(self) -> None:
        """Make calls until `stop`."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._count_on())
            tasks.create_task(self._scan_on())
            for number in count():
                if self._is_stopping:
                    break
                tasks.create_task(self._write_one(number))
                for _ in range(READS_PER_BEAT if self._acknowledged else 0):
                    tasks.create_task(self._read_one())
                await asyncio.sleep(BEAT)

    async def read_back(self, account: Account) -> int:
        """Count the unknown writes of an account that are in the store now."""
        found = [await self._read(account, self.client.range(_key(number))) for number in account.unknown]
        return sum(bool(result) for result in found)

    async def check(self) -> Findings:
        """Compare the store with the results of the calls."""
        versions = {int(kv.text()): kv.version async for kv in self.client.scan(prefix=WRITES)}
        counter = await self.client.get(COUNTER)
        steps, version = (int(counter.text()), counter.version) if counter is not None else (0, 0)
        unknown = [number for account in self.accounts for number in account.unknown]
        unknown_steps = sum(account.unknown_steps for account in self.accounts)
        return Findings(
            acknowledged=len(self._acknowledged),
            missing=len(self._acknowledged - versions.keys()),
            applied_twice=sum(version > 1 for version in versions.values()),
            refused=len(self._refused),
            refused_but_there=len(self._refused & versions.keys()),
            unknown=len(unknown),
            unknown_applied=len(versions.keys() & set(unknown)),
            counter=steps,
            counter_is_right=version == steps and self._steps <= steps <= self._steps + unknown_steps,
        )

    # The calls.

    async def _write_one(self, number: int) -> None:
        account = self.account
        try:
            await self._write(account, self.client.put(_key(number), str(number)))
        except EtcdError as error:
            if error.maybe_applied:
                account.unknown[number] = type(error).__name__
            else:
                self._refused.add(number)
                account.refused.append(_describe(error))
        else:
            self._acknowledged.add(number)
            self._newest = max(self._newest, number)

    async def _read_one(self) -> None:
        account = self.account
        found = await self._read(account, self.client.range(_key(self._newest)))
        account.stale += found is not None and not found

    async def _scan_on(self) -> None:
        while not self._is_stopping:
            pages = self.client.scan(prefix="demo/catalog/", page_size=100).pages()
            account, keys = self.account, 0
            while (page := await self._read(account, anext(pages))) is not None:
                keys += len(page)
                if not page.more:
                    account.stale += keys != CATALOG
                    break
            await asyncio.sleep(SCAN_PAUSE)

    async def _count_on(self) -> None:
        """Increment the counter by compare and swap, so that a lost reply cannot make a step count twice."""
        while not self._is_stopping:
            account = self.account
            found = await self._read(account, self.client.range(COUNTER))
            if found is not None:
                steps, revision = (int(found[0].text()), found[0].mod_revision) if found else (0, 0)
                is_unchanged = Key(COUNTER).mod_revision == revision
                txn = self.client.txn().when(is_unchanged).then(op.put(COUNTER, str(steps + 1)))
                try:
                    swapped = await self._write(account, txn.commit())
                except EtcdError as error:
                    account.unknown_steps += error.maybe_applied
                else:
                    self._steps += bool(swapped)
            await asyncio.sleep(TXN_PAUSE)

    async def _read(self, account: Account, call: Awaitable[RangeResult]) -> RangeResult | None:
        """Await a read; the result is None if it failed."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            with account.call():
                found = await call
        except EtcdError as error:
            account.read_errors.append(_describe(error))
            return None
        finally:
            self._ended += 1
            account.reads += 1
            account.longest_read = max(account.longest_read, loop.time() - began)
        self.answers[found.header.member_id] += 1
        return found

    async def _write(self, account: Account, call: Awaitable[Written]) -> Written:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            with account.call():
                result = await call
        finally:
            self._ended += 1
            account.writes += 1
            account.longest_write = max(account.longest_write, loop.time() - began)
        self.answers[result.header.member_id] += 1
        return result


def _key(number: int) -> str:
    return f"{WRITES}{number:06}"


def _describe(error: EtcdError) -> str:
    return f"{type(error).__name__}: {error.message}"
