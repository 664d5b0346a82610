"""The suites by name."""

from collections.abc import Mapping
from typing import Final

from tests.outside.python_suite import PythonSuite

# Older packages than today's, where these suites need them: the newer refuse what they do. Hypothesis has refused
# fixtures of a function with @given since 5.41, and etcd3 gives `tenacity` a function of two arguments, as before 7.
ETCD3: Final = PythonSuite(
    "etcd3",
    "0.12.0",
    ("pytest==7.4.4", "hypothesis==5.40.0", "mock==4.0.3", "six", "tenacity<7", "grpcio"),
    own_requirements=("protobuf==3.20.3",),
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
    ("pytest==8.4.2", "oslotest", "requests", "urllib3", "fixtures", "testtools"),
    source="etcd3gw/tests",
    environ={"TOOZ_TEST_HTTP_URL": "http://localhost:2379", "TOOZ_TEST_ETCD_PORT": "2379"},
    settings="pythonpath = .\n",
    before=_REGISTERED,
)
AETCD: Final = PythonSuite(
    "aetcd",
    "1.0.0",
    ("pytest==9.0.3", "pytest-asyncio==1.3.0", "pytest-mock==3.15.1", "pytest-timeout"),
    own_requirements=("grpcio", "protobuf>=5.27.2,<7"),
    run_only="integration",
    arguments=("--with-cluster", "--timeout=120"),
    settings="asyncio_mode = auto\n",
    members=3,
)

SUITES: Final[Mapping[str, PythonSuite]] = {suite.name: suite for suite in (ETCD3, ETCD3GW, AETCD)}
