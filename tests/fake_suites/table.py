"""The suites by name."""

from collections.abc import Mapping
from typing import Final

from tests.fake_suites.etcdctl_tests import EtcdctlTests
from tests.fake_suites.go_examples import GoExamples
from tests.fake_suites.node_client import NodeClient
from tests.fake_suites.python_clients import AETCD, ETCD3
from tests.fake_suites.rust_client import RustClient
from tests.fake_suites.steps import Suite

_ALL: Final[tuple[Suite, ...]] = (EtcdctlTests(), GoExamples(), NodeClient(), RustClient(), AETCD, ETCD3)
SUITES: Final[Mapping[str, Suite]] = {suite.name: suite for suite in _ALL}
