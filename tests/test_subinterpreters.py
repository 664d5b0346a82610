"""Subinterpreters with a GIL of their own: the package is imported, and a client works on the fake and is closed."""

import subprocess
import sys

import pytest

from tests.support.command_line import ROOT

PROGRAM = '''
import sys, threading
import _interpreters

WORK = """
import asyncio

async def main():
    from etcd_aio.fake import FakeEtcd
    async with FakeEtcd() as fake, fake.client() as client:
        await client.put("a", "1")
        assert (await client.get("a")).text() == "1"

asyncio.run(main())
"""

def work():
    made = _interpreters.create("isolated")
    try:
        failures.append(_interpreters.exec(made, WORK))
    finally:
        _interpreters.destroy(made)

failures = []
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
    if sys.argv[1] == "serial":
        thread.join()
for thread in threads:
    thread.join()
print([failure and failure.formatted for failure in failures])
'''


@pytest.mark.skipif(sys.version_info < (3, 13), reason="there are no subinterpreters to be made from Python")
@pytest.mark.parametrize(
    "order",
    [
        "serial",
        pytest.param(
            "parallel",
            marks=pytest.mark.skipif(
                sys.version_info < (3, 14), reason="two that import `datetime` at once crash CPython 3.13.0"
            ),
        ),
    ],
)
def test_four_subinterpreters_have_a_client_each(order: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, order], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, "[None, None, None, None]\n"), done.stderr[-2000:]
