"""The suites by name."""

from collections.abc import Mapping
from typing import Final

from tests.outside.patroni_suite import PatroniSuite
from tests.outside.python_suite import PythonSuite
from tests.outside.suite import Suite
from tests.outside.torch_suite import TorchAgentsSuite, TorchSuite

# Older packages than today's, where these suites need them: the newer refuse what they do. Hypothesis has refused
# fixtures of a function with @given since 5.41, and etcd3 gives `tenacity` a function of two arguments, as before 7.
ETCD3: Final = PythonSuite(
    "etcd3",
    "0.12.0",
    "etcd3",
    ("pytest==7.4.4", "hypothesis==5.40.0", "mock==4.0.3", "six", "tenacity<7", "grpcio"),
    own=("etcd3==0.12.0", "protobuf==3.20.3"),
    members=3,
)

# The tests are a package within the client.
_REGISTERED: Final = """
import importlib
import sys

import etcd3gw

for name in ("", ".base"):
    sys.modules[f"etcd3gw.tests{name}"] = importlib.import_module(f"tests{name}")
etcd3gw.tests = sys.modules["etcd3gw.tests"]
"""
ETCD3GW: Final = PythonSuite(
    "etcd3gw",
    "2.7.0",
    "etcd3gw",
    ("pytest==8.4.2", "oslotest", "requests", "urllib3", "fixtures", "testtools"),
    own=("etcd3gw==2.7.0",),
    source="etcd3gw/tests",
    environ={"TOOZ_TEST_HTTP_URL": "http://localhost:2379", "TOOZ_TEST_ETCD_PORT": "2379"},
    settings="pythonpath = .\n",
    before=_REGISTERED,
)

AETCD: Final = PythonSuite(
    "aetcd",
    "1.0.0",
    "aetcd",
    ("pytest==9.0.3", "pytest-asyncio==1.3.0", "pytest-mock==3.15.1", "pytest-timeout"),
    own=("aetcd==1.0.0", "protobuf>=5.27.2,<7"),
    run_only="integration",
    arguments=("--with-cluster", "--timeout=120"),
    settings="asyncio_mode = auto\n",
    members=3,
)

# The tests import the drivers for other stores, too.
_TOOZ: Final = (
    *("tooz==9.1.0", "pytest==8.4.2", "pytest-timeout", "redis", "pymemcache", "sysv_ipc", "fixtures", "testtools"),
    *("ddt", "requests"),
)
_OWN_TOOZ: Final = {"TOOZ_TEST_URL": "etcd3+http://localhost:2379"}


def _tooz(name: str, url: str, *, members: int = 1, kill_every: float = 0.0, outcomes: str = "tooz-aio") -> PythonSuite:
    """The tests of tooz with the driver that a URL names; with `--own` with the one that it has."""
    return PythonSuite(
        name,
        "9.1.0",
        "etcd3gw",
        _TOOZ,
        own=("etcd3gw==2.7.0",),
        module="tooz.tests.test_coordination",
        arguments=("--timeout=60",),
        environ={"TOOZ_TEST_URL": url},
        own_environ=_OWN_TOOZ,
        members=members,
        kill_every=kill_every,
        outcomes=outcomes,
    )


TOOZ_ETCD3GW: Final = _tooz("tooz-etcd3gw", "etcd3+http://localhost:2379", outcomes="tooz")
TOOZ: Final = _tooz("tooz", "etcd3+aio://localhost:2379")
_THREE: Final = "etcd3+aio://localhost:2379,localhost:2380,localhost:2381"
TOOZ_KILLS: Final = _tooz("tooz-kills", _THREE, members=3, kill_every=5)
TORCH: Final = TorchSuite()
TORCH_AGENTS: Final = TorchAgentsSuite()

_ALL: Final[tuple[Suite, ...]] = (
    *(ETCD3, ETCD3GW, AETCD, TOOZ_ETCD3GW, TOOZ, TOOZ_KILLS),
    *(TORCH, TORCH_AGENTS, PatroniSuite()),
)
SUITES: Final[Mapping[str, Suite]] = {suite.name: suite for suite in _ALL}
