"""Runs three instances on three real etcd members until Ctrl-C: `nox -s service`."""

import asyncio
from contextlib import ExitStack, suppress

from etcd_aio.testing import EtcdCluster
from service.instances import Instance

PORTS = (8001, 8002, 8003)


async def main() -> None:
    async with EtcdCluster(size=3) as cluster:
        await cluster.wait_healthy()
        endpoints = ",".join(cluster.endpoints)
        with ExitStack() as stack:
            for port in PORTS:
                stack.enter_context(Instance(port, cluster.endpoints))
            print(f"\netcd: {endpoints}; its members have the processes {[member.pid for member in cluster.members]}")
            for path in ("/", "/peers", "/notes/first", "/report", "/readyz", "/docs"):
                print(f"  curl http://127.0.0.1:{PORTS[0]}{path}")
            print(f"  ETCDCTL_ENDPOINTS={endpoints} etcd-aio put example/service/config/greeting Welcome")
            print("Kill or freeze a member or an instance, and ask again. Ctrl-C ends all.\n", flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
