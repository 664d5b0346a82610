"""What the first call of a program loads, beyond the import: on a real server, as a script and as a command."""

import pytest

from etcd_aio.testing import EtcdServer
from tests.test_startup import CLIENT, COMMAND, WITH_CLIENT, WITH_COMMAND, loaded

SCRIPT = """
import asyncio, sys
from etcd_aio import Client
async def main():
    async with Client(sys.argv[1]) as client:
        await client.{call}
asyncio.run(main())
"""
COMMAND_LINE = """
import sys
from etcd_aio.cli import main
sys.argv[1:] = ["get", "k", "--endpoints", sys.argv[1]]
assert main() == 0
"""


@pytest.mark.parametrize("call", ['get("k")', 'put("k", "v")', 'delete("missing")', 'range(prefix="missing/")'])
def test_a_first_call_loads_no_more_than_the_client(shared_server: EtcdServer, call: str) -> None:
    own, others = loaded(SCRIPT.format(call=call), shared_server.endpoint)
    assert own - CLIENT == set()
    assert others - WITH_CLIENT == set()


def test_a_command_that_gets_loads_no_more_than_both(shared_server: EtcdServer) -> None:
    own, others = loaded(COMMAND_LINE, shared_server.endpoint)
    assert own - CLIENT - COMMAND == {"cli.arguments", "cli.kv", "cli.format_simple"}
    assert others - WITH_CLIENT - WITH_COMMAND == set()
