"""The page about testing: its files are a project of their own, and all its tests pass with the pytest plugin."""

import re

import pytest

from tests.examples.blocks import Block, python_blocks, read
from tests.examples.paths import PAGES
from tests.support.suites import Project

PAGE = PAGES / "how-to" / "testing.md"
FILES: dict[str, Block] = {block.file: block for block in python_blocks(read(PAGE)) if block.file is not None}
TWICE = 1  # tests that use `etcd_any`
TESTS = re.compile(r"^ *(?:async )?def test_", re.MULTILINE)


@pytest.fixture
def page(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The files of the page."""
    project = Project(tmp_path_factory.mktemp("page"))
    for name, block in FILES.items():
        project.write(name, block.code)
    return project


def test_every_block_is_a_file_and_no_file_is_there_twice() -> None:
    assert len(FILES) == len(python_blocks(read(PAGE))) >= 12
    assert {"visits.py", "web.py", "conftest.py"} <= FILES.keys()


@pytest.mark.cluster
def test_the_tests_of_the_page_pass(page: Project) -> None:
    written = sum(len(TESTS.findall(block.code)) for block in FILES.values())
    assert written >= 20
    done = page.run("-rs", "-o", "asyncio_mode=strict", runner="strict")
    assert done.counts == {"passed": written + TWICE}, done.text


def test_those_on_the_fake_need_no_server(page: Project) -> None:
    on_the_fake = ("test_unit.py", "test_outages.py", "test_time.py")
    done = page.run(*on_the_fake, "--etcd-bin=/bin/false")
    assert done.counts == {"passed": sum(len(TESTS.findall(FILES[name].code)) for name in on_the_fake)}, done.text


def test_every_fixture_of_the_plugin_is_on_the_page() -> None:
    from pytest_etcd_aio import fixtures

    for name in vars(fixtures):
        if re.match(r"(etcd|fake)_", name):
            assert f"`{name}`" in read(PAGE), name
