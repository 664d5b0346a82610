"""The load: reads, writes, a counter and scans through one client, and an account of what became of each call.

Knows: the calls, and what must be true in the end. Never knows: members being killed, or how anything is shown.

Every write has a key of its own, so a key's version is the number of times its write was applied. Every read asks for
the newest write that was acknowledged, so it also finds out whether an answer is stale.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

from etcd_aio import Client, EtcdError, Key, PutResult, RangeResult, TxnResult, op

BEAT = 0.04  # seconds after which a write and some reads begin, whether or not the last ones have ended
READS_PER_BEAT = 6
CALLS_PER_SECOND = (1 + READS_PER_BEAT) / BEAT
TXN_PAUSE = 0.1
SCAN_PAUSE = 0.5
CATALOG = 250  # keys that are scanned, in pages of 100

Written = TypeVar("Written", PutResult, TxnResult)

WRITES = "demo/writes/"
COUNTER = "demo/counter"


@dataclass
class Account:
    """What became of the calls that began in one act.

    Attributes:
        reads, writes: calls that have ended; a page of a scan is a read, a step of the counter is a write.
        read_errors: errors that a caller saw.
        stale: reads that did not find what had been acknowledged before.
        unknown: the writes that ended `maybe_applied`, by number, and the name of the error.
        unknown_steps: steps of the counter that ended so.
        refused: writes that ended with an error that promises that nothing was done.
        longest_read, longest_write: in seconds, errors included.
        moved: failed attempts that were made again on another member.
        in_flight: calls that have not ended.
        is_idle: set while there are none.
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
        """Book a call for as long as it is under way."""
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
    """What the store holds in the end, compared with what the callers were told."""

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
    """Runs until it is stopped; a call belongs to the account that is open when it begins.

    Calls begin at a steady rate, as those of many independent users do: a slow answer holds up nobody else.
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
        """Book new calls to the next account, and wait until every call of the last one has ended."""
        account, self.account = self.account, Account()
        self.accounts.append(self.account)
        await account.is_idle.wait()
        # What was attempted beyond one attempt for each call.
        moved = sum(one.attempts for one in self.client.statistics()) - self._ended
        account.moved, self._moved = max(moved - self._moved, 0), moved

    def stop(self) -> None:
        """Begin no more calls; `run` returns when those under way have ended."""
        self._is_stopping = True

    async def prepare(self) -> None:
        """Write what is scanned."""
        for start in range(0, CATALOG, 50):
            puts = (op.put(f"demo/catalog/{number:03}", f"item {number}") for number in range(start, start + 50))
            await self.client.txn().then(*puts).commit()
            self._ended += 1

    async def run(self) -> None:
        """The load itself."""
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
        """How many of an account's unknown writes are in the store now."""
        found = [await self._read(account, self.client.range(_key(number))) for number in account.unknown]
        return sum(bool(one) for one in found)

    async def check(self) -> Findings:
        """Compare the store with what the callers were told."""
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
                account.refused.append(_told(error))
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
        """Read, compare, swap: one step at a time, so that a lost answer cannot make it count twice."""
        while not self._is_stopping:
            account = self.account
            found = await self._read(account, self.client.range(COUNTER))
            if found is not None:
                steps, revision = (int(found[0].text()), found[0].mod_revision) if found else (0, 0)
                is_unchanged = Key(COUNTER).mod_revision == revision
                txn = self.client.txn().when(is_unchanged).then(op.put(COUNTER, str(steps + 1)))
                try:
                    won = await self._write(account, txn.commit())
                except EtcdError as error:
                    account.unknown_steps += error.maybe_applied
                else:
                    self._steps += bool(won)
            await asyncio.sleep(TXN_PAUSE)

    async def _read(self, account: Account, call: Awaitable[RangeResult]) -> RangeResult | None:
        """None if it failed."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            with account.call():
                found = await call
        except EtcdError as error:
            account.read_errors.append(_told(error))
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


def _told(error: EtcdError) -> str:
    return f"{type(error).__name__}: {error.message}"
