"""cli/member.py, cli/lease.py, cli/maintenance.py, cli/lock.py, cli/elect.py: every verb that asks a server ends at
once when it is interrupted, also if no member answers.
"""

import asyncio

import pytest

from etcd_aio.cli.outcome import Failure
from etcd_aio.fake import FakeEtcd
from tests.support.command_here import CommandLine
from tests.support.virtual_time import tasks

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

VERBS = (
    *("get a", "put a 1", "del a", "del a b", "compaction 1", "watch a", "watch --follow a", "dump a"),
    *("lease grant 10", "lease list", "lease keep-alive 1", "lock l", "lock l -- sleep 100", "elect e v", "elect -l e"),
    *("member list", "member remove 1", "endpoint health", "endpoint status", "endpoint hashkv --cluster", "defrag"),
    *("alarm list", "move-leader 1", "downgrade cancel", "auth status", "user list", "role list", "health --wait=60s"),
    *("top", "top --watch a", "check perf", "check datascale", "make-mirror 127.0.0.1:1"),
)


@pytest.mark.parametrize("words", VERBS)
async def test_an_interrupt_ends_it_at_once_though_nothing_answers(
    words: str, fake: FakeEtcd, command: CommandLine
) -> None:
    for member in fake.members:
        member.pause()
    verb, separator, behind = words.partition(" -- ")
    given = [*verb.split(), "--command-timeout=60s", "--dial-timeout=60s", *((separator + behind).split())]
    running = asyncio.create_task(command(*given))
    await asyncio.sleep(2.0)
    assert not running.done()
    began = asyncio.get_running_loop().time()
    running.cancel()
    try:
        assert await running == 0
    except (asyncio.CancelledError, Failure):
        assert verb.split()[0] != "top"
    else:
        assert verb.split()[0] == "top"
    # Leases that are being granted are revoked, for which closing a client waits so long.
    assert asyncio.get_running_loop().time() - began <= 0.5
    for member in fake.members:
        member.resume()
    await asyncio.sleep(1.0)
    assert not tasks()
