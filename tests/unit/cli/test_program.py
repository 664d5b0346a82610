"""cli/program.py, cli/version.py, cli/versions.py, cli/outcome.py: the run of a command without a server: exit codes,
what is imported, the message if click is missing.
"""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from etcd_aio import __version__
from etcd_aio.cli import program, versions
from etcd_aio.codec import BACKEND
from tests.support.command_line import ROOT


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("get", 128),
        ("get a --prefix --from-key", 128),
        ("get a --order=UP", 4),
        ("get a --unknown", 1),
        ("get a -w nothing", 4),
        ("nothing", 1),
        ("lease grant x", 128),
        ("get a --command-timeout=x", 128),
        ("get a --user=u", 128),
        ("get a --cert=", 128),
        ("top --interval=0", 128),
        ("lease", 0),
        ("get --help", 0),
        ("options", 0),
    ],
)
def test_exit_codes_without_a_server(words: str, code: int, capfd: pytest.CaptureFixture[str]) -> None:
    assert program.run(words.split()) == code, capfd.readouterr().err


def test_an_interrupt_while_the_program_is_imported_is_no_traceback() -> None:
    code = (
        "import builtins, sys\n"
        "from etcd_aio.cli import main\n"
        "plain = builtins.__import__\n"
        "def interrupted(name, *rest):\n"
        "    if name == 'click':\n"
        "        raise KeyboardInterrupt\n"
        "    return plain(name, *rest)\n"
        "builtins.__import__ = interrupted\n"
        "sys.argv[1:] = ['get', 'a']\n"
        "sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (5, "", "")


def test_without_click_the_message_names_the_extra() -> None:
    code = "import sys; sys.modules['click'] = None; from etcd_aio.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'etcd_aio[cli]'" in done.stderr


@pytest.mark.parametrize("extra", [None, "1"], ids=["usual", "pure"])
def test_the_version_needs_no_click_and_says_whether_all_parts_are_accelerated(extra: str | None) -> None:
    code = "import sys; sys.modules['click'] = None; sys.argv[1:] = ['--version']\n"
    code += "from etcd_aio.cli import main; sys.exit(main())"
    environ = {**os.environ, **({"ETCD_AIO_PURE_PYTHON": extra} if extra else {})}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    backend = "pure Python (ETCD_AIO_PURE_PYTHON is set)" if extra else BACKEND
    lines = [f"etcd-aio version: {__version__}", "etcdctl version: 3.7.3", "API version: 3.7"]
    assert done.stdout.splitlines() == [*lines, f"Codec, calls, events: {backend}"]


def test_the_version_tells_parts_apart_that_are_not_accelerated(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"codec": "accelerated", "calls": "pure Python (not installed)", "events": "accelerated"}
    modules = {name: SimpleNamespace(BACKEND=found[part]) for part, name in versions._ACCELERATED.items()}
    monkeypatch.setattr(versions, "import_module", modules.__getitem__)
    *_, line = versions.version_lines()
    assert line == "Codec, events: accelerated; calls: pure Python (not installed)"


def test_version_help_and_completion_import_neither_rich_nor_other_verbs() -> None:
    code = (
        "import os, sys\n"
        "from etcd_aio.cli import main\n"
        "for word in ('version', '--help'):\n"
        "    sys.argv = ['etcd-aio', word]; main()\n"
        "os.environ |= {'_ETCD_AIO_COMPLETE': 'bash_complete', 'COMP_WORDS': 'etcd-aio en', 'COMP_CWORD': '1'}\n"
        "try:\n"
        "    main()\n"
        "except SystemExit:\n"
        "    pass\n"
        "late = {'rich', 'tomllib', 'etcd_aio.concurrency', 'etcd_aio.mirror', 'etcd_aio.services'}\n"
        "late |= {f'etcd_aio.cli.{verb}' for verb in ('kv', 'lock', 'endpoint')}\n"
        "assert not late & set(sys.modules), late & set(sys.modules)"
    )
    environ = {**os.environ, "XDG_CONFIG_HOME": os.devnull}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environ, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"plain,endpoint" in done.stdout
