"""proto/generate.py: how it compares, writes and adapts; and that the committed messages are the ones it makes."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

PROTO_DIR = Path(__file__).parents[3] / "proto"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"proto_{name}", PROTO_DIR / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load("generate")


def test_committed_messages_are_what_the_proto_files_make() -> None:
    pytest.importorskip("grpc_tools", reason="needs the `generate` dependency group")
    pytest.importorskip("betterproto2_compiler", reason="needs the `generate` dependency group")
    assert generate.differences(generate.generate(), generate.PB_DIR) == []


def test_every_kind_of_difference_is_reported(tmp_path: Path) -> None:
    generate.write({"same.py": "a\n", "changed.py": "a\n", "extra.py": "a\n"}, tmp_path)
    report = generate.differences({"same.py": "a\n", "changed.py": "b\n", "lost.py": "a\n"}, tmp_path)
    assert [line for line in report if not line.startswith(" ")] == [
        "differs: changed.py",
        "not generated: extra.py",
        "missing: lost.py",
    ]
    assert "    -a" in report
    assert "    +b" in report


def test_long_diffs_are_cut(tmp_path: Path) -> None:
    generate.write({"a.py": "".join(f"{n}\n" for n in range(100))}, tmp_path)
    report = generate.differences({"a.py": ""}, tmp_path)
    assert len(report) == 1 + generate.SHOWN_DIFF_LINES + 1
    assert report[-1].endswith("more lines")


def test_writing_removes_what_is_no_longer_generated_and_spares_what_never_was(tmp_path: Path) -> None:
    generate.write({"old/__init__.py": "", generate.MESSAGE_FILE: "by hand"}, tmp_path)
    generate.write({"new/__init__.py": "x\n"}, tmp_path)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.py")) == [
        generate.MESSAGE_FILE,
        "new/__init__.py",
    ]
    assert generate.differences({"new/__init__.py": "x\n"}, tmp_path) == []


def test_a_name_in_two_packages_is_refused() -> None:
    files = {f"{package}/__init__.py": '__all__ = ("Same",)\n' for package in generate.FLAT_PACKAGES}
    with pytest.raises(SystemExit, match="both define Same"):
        generate._init_of(files)
