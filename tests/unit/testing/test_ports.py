"""testing/ports.py: how a host stands in a URL, and the range of ports of each process; choosing one needs sockets."""

import itertools

import pytest

from etcd_aio.testing.ports import port_range, url_host


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", "127.0.0.1"), ("localhost", "localhost"), ("::1", "[::1]")]
)
def test_an_ipv6_address_stands_in_brackets(host: str, expected: str) -> None:
    assert url_host(host) == expected


def test_each_worker_of_a_parallel_run_has_its_own_range() -> None:
    ranges = [
        port_range({"PYTEST_XDIST_WORKER": f"gw{number}", "PYTEST_XDIST_WORKER_COUNT": "6"}) for number in range(6)
    ]
    assert ranges[0][0] == port_range({})[0]
    assert ranges[-1][1] <= port_range({})[1]
    assert all(lower[1] < upper[0] for lower, upper in itertools.pairwise(ranges))
    assert all(highest - lowest > 3000 for lowest, highest in ranges)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"PYTEST_XDIST_WORKER": "master"},
        {"PYTEST_XDIST_WORKER": "gw2"},
        {"PYTEST_XDIST_WORKER": "gw2", "PYTEST_XDIST_WORKER_COUNT": "2"},
    ],
)
def test_any_other_process_has_the_whole_range(environment: dict[str, str]) -> None:
    assert port_range(environment) == (10_000, 32_767)
