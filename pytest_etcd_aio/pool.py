"""Pool: the servers of a run. It starts them when a test wants them, heals them, and ends them."""

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NoReturn, TypeAlias
from uuid import uuid4

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from etcd_aio.errors import EtcdError
from etcd_aio.testing import EtcdBinary, EtcdNotFoundError, ServerOptions, find_etcd
from pytest_etcd_aio.access import Access, given_access
from pytest_etcd_aio.certificates import issue
from pytest_etcd_aio.cleaning import clean, lease_ids
from pytest_etcd_aio.cluster import Cluster
from pytest_etcd_aio.given import GivenServer, connect
from pytest_etcd_aio.options import Options
from pytest_etcd_aio.server import Server
from pytest_etcd_aio.starting import started_cluster, started_server
from pytest_etcd_aio.wanted import Wanted, unusable

Target: TypeAlias = Server | Cluster | GivenServer

_CHEAP_LOGINS: Final = "--bcrypt-cost=4"  # the lowest cost: these passwords need not be safe


class Pool:
    """The servers of a run. Those that tests share are started once, and end with the run.

    Args:
        options: of the run.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._servers: dict[Wanted, Server] = {}
        self._clusters: dict[Wanted, Cluster] = {}
        self._given: GivenServer | None = None
        self._given_error = ""
        self._folders: list[Path] = []
        self.has_failures = False

    @property
    def portal(self) -> BlockingPortal:
        """The loop of the servers and proxies, in a thread of its own."""
        if self._portal is None:
            self._portal = self._stack.enter_context(start_blocking_portal(name="pytest_etcd_aio"))
        return self._portal

    @property
    def keeps_data(self) -> bool:
        """Whether the data of servers is left if a test fails."""
        return self._options.keep

    def server(self, wanted: Wanted) -> Server | GivenServer:
        """A server. The test is skipped if there is none, or fails if one is required."""
        if self._options.endpoints:
            return self._given_server(wanted)
        if wanted not in self._servers:
            binary = self._binary(wanted)
            with self._cleaned_up_after_error() as folder:
                access, options = self._prepared(wanted, binary, folder)
                self._servers[wanted] = started_server(self.portal, wanted, access, options)
        return self._servers[wanted]

    def cluster(self, wanted: Wanted) -> Cluster:
        """A cluster. The test is skipped if there is no etcd, or fails if one is required."""
        if self._options.endpoints:
            self._missing("etcd_cluster needs servers of its own, and --etcd-endpoints names another")
        if wanted not in self._clusters:
            binary = self._binary(wanted)
            with self._cleaned_up_after_error() as folder:
                access, options = self._prepared(wanted, binary, folder)
                self._clusters[wanted] = started_cluster(self.portal, wanted, access, options)
        return self._clusters[wanted]

    def running(self, wanted: Wanted) -> list[Server | Cluster]:
        """What was started for a test."""
        found = (self._servers.get(wanted), self._clusters.get(wanted))
        return [each for each in found if each is not None]

    @contextmanager
    def namespace(self, target: Target) -> Iterator[str]:
        """A prefix that no other test uses. Its keys, and leases that are granted meanwhile, go at the end."""
        prefix = f"test-{uuid4().hex[:12]}/"
        is_own = not isinstance(target, GivenServer)
        kept = target.run(lease_ids, target.access) if is_own else None
        yield prefix
        target.run(clean, target.access, prefix, kept)

    def heal(self) -> None:
        """Let every server run again.

        Raises:
            EtcdStartError: one cannot be started any more.
        """
        for target in self._started():
            target.heal()

    def end_test(self, test: str) -> None:
        """End the servers that were for one test only, and heal the others.

        Args:
            test: its node id.
        """
        for wanted in [wanted for wanted in (*self._servers, *self._clusters) if wanted.owner == test]:
            for ended in (self._servers.pop(wanted, None), self._clusters.pop(wanted, None)):
                if ended is not None:
                    ended.close()
        self.heal()

    def close(self) -> None:
        """End all servers. Their data goes, unless a test failed and it is to be kept."""
        with self._stack:
            for target in self._started():
                self._stack.callback(target.close)
            self._servers, self._clusters = {}, {}
        if not (self._options.keep and self.has_failures):
            for folder in self._folders:
                shutil.rmtree(folder, ignore_errors=True)

    def describe(self) -> str:
        """The etcd that tests get by default, for people."""
        if self._options.endpoints:
            try:
                return f"{', '.join(given_access(self._options.endpoints).endpoints)} (given)"
            except EtcdError:  # each test that needs it fails, and says why
                return "none that can be used (given)"
        try:
            found = self._find(None)
        except (EtcdNotFoundError, ValueError):
            return "none found"
        return f"{found.version} ({'PATH' if found.source == 'path' else found.source})"

    def _started(self) -> list[Server | Cluster]:
        return [*self._servers.values(), *self._clusters.values()]

    def _find(self, version: str | None) -> EtcdBinary:
        with pytest.MonkeyPatch.context() as patch:
            if self._options.binary:
                patch.setenv("ETCD_AIO_TEST_ETCD", self._options.binary)
            return find_etcd(version or self._options.version or None)

    def _binary(self, wanted: Wanted) -> EtcdBinary:
        try:
            return self._find(wanted.version)
        except EtcdNotFoundError as error:
            self._missing(str(error))
        except ValueError as error:
            unusable(str(error))

    def _given_server(self, wanted: Wanted) -> GivenServer:
        asked = [name for name in ("nodes", "version", "tls", "auth", "private", "options") if getattr(wanted, name)]
        if asked:
            self._missing(f"etcd({asked[0]}=) needs a server of its own, and --etcd-endpoints names another")
        if self._given is None and not self._given_error:
            try:
                self._given = connect(self.portal, given_access(self._options.endpoints))
            except EtcdError as error:
                self._given_error = f"the server of --etcd-endpoints cannot be used: {error}"
        if self._given is None:
            unusable(self._given_error)
        return self._given

    def _prepared(self, wanted: Wanted, binary: EtcdBinary, folder: Path) -> tuple[Access, ServerOptions]:
        """How clients will reach a server, and the options to start it with."""
        options: ServerOptions = {"binary": binary, "flags": wanted.flags}
        tls = auth = None
        if wanted.tls:
            options["tls"], tls = issue(folder)
        if wanted.auth:
            auth = ("root", secrets.token_hex(8))
            options["flags"] = [_CHEAP_LOGINS, *wanted.flags]
        if self._options.keep:
            options["directory"] = folder
        return Access((), tls, auth), options

    @contextmanager
    def _cleaned_up_after_error(self) -> Iterator[Path]:
        """A folder for certificates and data."""
        folder = Path(tempfile.mkdtemp(prefix="pytest_etcd_aio-"))
        self._folders.append(folder)
        try:
            yield folder
        except BaseException:  # Ctrl-C too: private keys must not stay behind
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _missing(self, reason: str) -> NoReturn:
        if self._options.required:
            unusable(reason)
        pytest.skip(reason)
