"""PeerNetwork: proxies between the members of a cluster, which can isolate one of them, or let it lag behind.

A member advertises one peer URL to all others, so the port does not identify the caller. While a member is isolated or
lags, the proxy looks in `/proc` for the process that owns the socket of the caller's port, hence it needs Linux.
"""

import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import anyio.to_thread

from etcd_aio.testing.proxy import FaultProxy
from etcd_aio.testing.proxy_connection import ProxyConnection


class PeerNetwork:
    """The peer links of one cluster.

    Args:
        targets: where each member listens for peers, by its name.
        pids: returns the process id of each running member.
        host: the address the proxies listen on.

    Raises:
        RuntimeError: this is not Linux.
    """

    def __init__(self, targets: Mapping[str, str], pids: Callable[[], Mapping[str, int]], *, host: str) -> None:
        if sys.platform != "linux":
            raise RuntimeError("peer proxies need Linux: they find the owner of a connection in /proc")
        self._pids = pids
        self._isolated: set[str] = set()
        self._lags: dict[str, float] = {}
        self._proxies = {name: _PeerProxy(target, host, self, name) for name, target in targets.items()}

    @property
    def urls(self) -> Mapping[str, str]:
        """The peer URL that each member has to advertise."""
        return {name: proxy.endpoint for name, proxy in self._proxies.items()}

    async def start(self) -> None:
        """Listen for every member."""
        for proxy in self._proxies.values():
            await proxy.start()

    async def aclose(self) -> None:
        """End all connections and listen no more."""
        for proxy in self._proxies.values():
            await proxy.aclose()

    def close_now(self) -> None:
        """Do what `aclose` does, without waiting."""
        for proxy in self._proxies.values():
            proxy.close_now()

    def isolate(self, name: str) -> None:
        """Let nothing through to or from this member."""
        self._isolated.add(name)
        self._remake_connections()

    def reconnect(self, name: str) -> None:
        """Let everything through again, except for members that are still isolated."""
        self._isolated.discard(name)
        self._remake_connections()

    def lag(self, name: str, seconds: float) -> None:
        """Pass what the others send to this member on so much later; 0 ends it."""
        self._lags.pop(name, None)
        if seconds:
            self._lags[name] = seconds
        self._remake_connections()

    def _remake_connections(self) -> None:
        # All connections, since the owner is looked up only when a connection is made.
        for proxy in self._proxies.values():
            proxy.reset()

    async def admits(self, target: str, port: int) -> bool:
        """Whether a connection to a member passes anything on; the port is the caller's."""
        if target in self._isolated:
            return False
        return await self._caller(self._isolated, target, port) is None

    async def apply_lag(self, connection: ProxyConnection, target: str, port: int) -> None:
        """Delay what members that lag receive on a connection to a member; the port is the caller's.

        Most of it they receive on connections that they have made themselves.
        """
        if target in self._lags:
            connection.lag("to_server", self._lags[target])
        caller = await self._caller(self._lags, target, port)
        if caller is not None:
            connection.lag("to_client", self._lags.get(caller, 0.0))

    async def _caller(self, suspects: Collection[str], target: str, port: int) -> str | None:
        """The one of these members that has made a connection to a member; None if another one has."""
        pids = self._pids()
        suspected = {name: pids[name] for name in suspects if name in pids}
        if not suspected:
            return None
        own_port = urlsplit(self._proxies[target].endpoint).port or 0
        # The kernel takes milliseconds to list its sockets, hence the thread.
        return await anyio.to_thread.run_sync(_owner, suspected, port, own_port)


class _PeerProxy(FaultProxy):
    """The proxy before the peer port of one member.

    Args:
        target: where the member listens for peers.
        host: the address to listen on.
        network: knows the faults.
        name: of the member.
    """

    def __init__(self, target: str, host: str, network: PeerNetwork, name: str) -> None:
        super().__init__(target, host=host, admit=lambda port: network.admits(name, port))
        self._network = network
        self._name = name

    async def _serve(self, connection: ProxyConnection, client_port: int) -> None:
        await self._network.apply_lag(connection, self._name, client_port)
        await super()._serve(connection, client_port)


def _owner(pids: Mapping[str, int], port: int, peer_port: int) -> str | None:
    """The name of the process that has the connection from `port` to `peer_port`; None if it is none of these."""
    wanted = {f"socket:[{inode}]" for inode in _socket_inodes(port, peer_port)}
    return next((name for name, pid in pids.items() if _has_file(pid, wanted)), None)


def _socket_inodes(port: int, peer_port: int) -> set[str]:
    found = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        with suppress(OSError):  # a kernel without IPv6
            found |= _inodes_in(table.read_text(), port, peer_port)
    return found


def _inodes_in(table: str, port: int, peer_port: int) -> set[str]:
    """The kernel's numbers of the sockets that are bound to `port` and connected to `peer_port`."""
    rows = (line.split() for line in table.splitlines() if f":{port:04X} " in line)
    return {row[9] for row in rows if row[1].endswith(f":{port:04X}") and row[2].endswith(f":{peer_port:04X}")}


def _has_file(pid: int, wanted: set[str]) -> bool:
    try:
        files = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    for file in files:
        try:
            if str(file.readlink()) in wanted:
                return True
        except OSError:
            continue  # closed meanwhile
    return False
