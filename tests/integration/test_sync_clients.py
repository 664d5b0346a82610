"""A thousand blocking clients: no thread, task, timer or file descriptor is left."""

import pytest

from etcd_aio.testing import EtcdServer
from tests.support.sync_programs import run_program

pytestmark = pytest.mark.cluster

CLIENTS = {"nightly": 1_000}

PROGRAM = """
def descriptors():
    return len(os.listdir("/dev/fd"))

def threads():
    return sorted(thread.name for thread in threading.enumerate())

def use(at):
    with Client(endpoint) as client:
        put = client.put(f"clients/{at % 7}", "1")
        if at % 10 == 0:
            key = f"clients/{at % 7}"
            with client.lock("clients/lock"), client.watch(key, start_revision=put.revision) as watcher:
                next(watcher)

use(0)
before = descriptors(), threads()
for at in range(number):
    use(at)
assert threads() == ["MainThread"], threads()
assert (descriptors(), threads()) == before, (descriptors(), before)

# The same while another client lives: the loop goes on, so its tasks and timers are counted, too.
with Client(endpoint) as lasting:
    loop = lasting._portal.thread._loop
    def left():
        import asyncio
        names = [task.get_name() for task in asyncio.all_tasks(loop)]
        tasks = sorted(name for name in names if "serving" not in name)  # which begins a second after the connection
        timers = [handle for handle in loop._scheduled if not handle.cancelled()]
        return [descriptors(), threads(), tasks], len(timers)
    lasting.put("clients/a", "1")
    use(0)
    before, timers = left()
    for at in range(number // 4):
        use(at)
    ends = time.monotonic() + 60
    while (left()[0] != before or left()[1] > timers) and time.monotonic() < ends:
        time.sleep(0.01)
    assert left()[0] == before, (left(), before)
    assert left()[1] <= timers, (left(), timers)
# And by several threads at a time.
workers = [threading.Thread(target=lambda: [use(at) for at in range(number // 40)]) for _ in range(8)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
assert threads() == ["MainThread"], threads()
print("well")
"""


def test_clients_that_are_opened_and_closed_leave_nothing(
    shared_server: EtcdServer, pytestconfig: pytest.Config
) -> None:
    clients = CLIENTS.get(str(pytestconfig.getoption("tier")), 100)
    assert run_program(PROGRAM, shared_server.endpoint, clients) == "well\n"
