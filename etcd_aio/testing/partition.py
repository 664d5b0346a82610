"""PeerNetwork: proxies between the members of a cluster, which can isolate one of them.

A member advertises one peer URL to all others, so the port does not identify the caller. While a member is isolated,
the proxy looks in `/proc` for the process that owns the socket of the caller's port, hence it needs Linux.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import anyio.to_thread

from etcd_aio.testing.proxy import FaultProxy


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
        self._proxies = {
            name: FaultProxy(target, host=host, admit=self._admission(name)) for name, target in targets.items()
        }

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
        """The same without an await."""
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

    def _remake_connections(self) -> None:
        # All connections, since the owner is looked up only when a connection is made.
        for proxy in self._proxies.values():
            proxy.reset()

    def _admission(self, target: str) -> Callable[[int], Awaitable[bool]]:
        async def admits(port: int) -> bool:
            if not self._isolated:
                return True
            if target in self._isolated:
                return False
            pids = self._pids()
            suspects = [pids[name] for name in self._isolated if name in pids]
            own_port = urlsplit(self._proxies[target].endpoint).port or 0
            # The kernel takes milliseconds to list its sockets, hence the thread.
            return not await anyio.to_thread.run_sync(_is_owned_by, suspects, port, own_port)

        return admits


def _is_owned_by(pids: Sequence[int], port: int, peer_port: int) -> bool:
    """Whether one of these processes has the connection from `port` to `peer_port`."""
    wanted = {f"socket:[{inode}]" for inode in _socket_inodes(port, peer_port)}
    return any(_has_file(pid, wanted) for pid in pids)


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
