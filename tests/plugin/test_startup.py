"""A run in which no test uses the plugin hardly notices it; and everything is documented."""

import re
import tomllib
from importlib import import_module

import pytest

from pytest_etcd_aio import fixtures
from tests.support.suites import ROOT, Project

FIXTURES = sorted(name for name in vars(fixtures) if re.match(r"(etcd|fake)_", name))


@pytest.mark.parametrize("runner", ["none", "anyio", "strict"])
def test_nothing_of_the_client_is_imported_unless_a_test_uses_it(project: Project, runner: str) -> None:
    project.write("conftest.py", "from pytest_etcd_aio import factories\nold = factories.server('old')\n")
    project.write(
        "test_it.py",
        """
        import sys

        def test_it():
            assert "pytest_etcd_aio.fixtures" in sys.modules
            assert [name for name in sys.modules if name.split(".")[0] == "etcd_aio"] == []
        """,
    )
    done = project.run(runner=runner)
    assert done.counts == {"passed": 1}, done.text
    assert "\netcd: " not in done.text


def test_the_client_is_imported_without_assertion_rewriting(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import etcd_aio
        from _pytest.assertion.rewrite import AssertionRewritingHook

        def test_it(pytestconfig):
            assert not isinstance(etcd_aio.__loader__, AssertionRewritingHook)
            assert isinstance(pytestconfig.pluginmanager.rewrite_hook._must_rewrite, set), "the plugin relies on it"
            assert isinstance(pytestconfig.pluginmanager.rewrite_hook._marked_for_rewrite_cache, dict)
        """,
    )
    # As for the wheel: pytest marks all packages that are installed with a plugin.
    project.write("first.py", "import pytest\npytest.register_assert_rewrite('etcd_aio')\n")
    done = project.run(runner="none", PYTEST_ADDOPTS="-p first", PYTHONPATH=f"{ROOT}:{project.folder}")
    assert done.counts == {"passed": 1}, done.text


def test_the_line_about_etcd_says_what_is_used(project: Project) -> None:
    project.write("test_it.py", "def test_it(fake_etcd): pass")
    assert "\netcd: fake 3.7\n" in project.run().text
    assert "\netcd: fake 3.5\n" in project.run("--etcd-version", "3.5").text


def test_the_help_of_pytest_has_the_options_the_marker_and_the_fixtures(project: Project) -> None:
    text = project.run("--help").text
    for name in ("endpoints", "bin", "version", "keep", "required"):
        assert f"--etcd-{name}" in text
        assert f"etcd_{name} (string):" in text
    assert "@pytest.mark.etcd(nodes=3, version='>=3.6'" in project.run("--markers").text
    listing = project.run("--fixtures").text
    for name in FIXTURES:
        described = re.search(rf"^{name}( \[session scope\])? -- .*\n +(\S.*)", listing, re.MULTILINE)
        assert described is not None, name
        assert "no docstring" not in described[2], name
    assert len(FIXTURES) == 10


def test_the_wheel_has_the_plugin_with_its_entry_point() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (name,) = settings["project"]["entry-points"]["pytest11"].values()
    plugin = import_module(name)
    assert name in settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert plugin.pytest_plugins == ("pytest_etcd_aio.hooks", "pytest_etcd_aio.fixtures")
    assert (ROOT / name / "py.typed").exists()


def test_the_types_of_fixtures_can_be_imported() -> None:
    plugin = import_module("pytest_etcd_aio")
    for name in ("Cluster", "GivenServer", "Proxy", "Server"):
        assert getattr(plugin, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Unknown'"):
        _ = plugin.Unknown
