"""The pages about web frameworks and live configuration: their programs run, and answer and print what they should."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from tests.contrib import web_clients
from tests.contrib.served import Served
from tests.examples.blocks import blocks, python_blocks, read
from tests.examples.paths import PAGES, ROOT

PAGE = read(PAGES / "how-to" / "web-frameworks.md")
SETTINGS = read(PAGES / "how-to" / "live-configuration.md")
PROGRAMS = {
    block.file: block.code for page in (PAGE, SETTINGS) for block in python_blocks(page) if block.file is not None
}
FRAMEWORKS = {
    "fastapi": "app.py",
    "litestar": "litestar_app.py",
    "aiohttp": "aiohttp_app.py",
    "quart": "quart_app.py",
    "sanic": "sanic_app.py",
}


def test_every_program_is_tested() -> None:
    assert set(PROGRAMS) == {*FRAMEWORKS.values(), "settings.py"}


@pytest.mark.parametrize("name", [name for name in FRAMEWORKS if find_spec(name) is not None])
def test_an_application_answers(name: str, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    program = PROGRAMS[FRAMEWORKS[name]].replace("http://127.0.0.1:2379", served.endpoint)
    module = ModuleType(Path(FRAMEWORKS[name]).stem)
    monkeypatch.setitem(sys.modules, module.__name__, module)  # Litestar looks up annotations there
    exec(compile(program, FRAMEWORKS[name], "exec"), vars(module))
    answers = web_clients.ask(name, module.app, ["/", "/livez"], lambda: None)
    assert answers["/"][0] == 200
    assert answers["/"][1].strip('"') == "hello"
    assert answers["/livez"][0] == 200


def test_the_settings_are_those_on_the_page(served: Served, tmp_path: Path) -> None:
    program = tmp_path / "settings.py"
    program.write_text(PROGRAMS["settings.py"].replace("http://127.0.0.1:2379", served.endpoint))
    run = subprocess.run(
        [sys.executable, program], cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    shown = blocks(SETTINGS.partition("It prints:")[2])
    printed = next(block.code for block in shown if block.language == "text")
    assert run.stdout == printed
