"""base/accelerator.py: whether a compiled accelerator is used, and why not."""

import sys
from types import ModuleType

import pytest

from etcd_aio.base import accelerator
from etcd_aio.base.accelerator import UnusableError, load, load_if_usable


def name_of(module: ModuleType) -> str:
    return module.__name__


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "import_module", ModuleType)


@pytest.mark.parametrize("value", ["1", "yes"])
def test_it_is_turned_off_by_a_variable(value: str) -> None:
    with pytest.raises(UnusableError, match="ETCD_AIO_PURE_PYTHON is set"):
        load("codec", name_of, {"ETCD_AIO_PURE_PYTHON": value})


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("value", ["", "0"])
def test_a_variable_that_says_no_leaves_it_on(value: str) -> None:
    assert load("codec", name_of, {"ETCD_AIO_PURE_PYTHON": value}) == "etcd_aio.codec._speedups"


@pytest.mark.usefixtures("installed")
def test_a_free_threaded_python_takes_generated_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "abiflags", "t", raising=False)
    with pytest.raises(UnusableError, match="free-threaded"):
        load("codec", name_of, {})


def test_what_is_not_installed_is_not_used() -> None:
    with pytest.raises(UnusableError, match="not installed"):
        load("codec.none", name_of, {})


def test_what_cannot_be_loaded_is_not_used_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> ModuleType:
        raise ImportError("undefined symbol")

    monkeypatch.setattr(accelerator, "import_module", broken)
    with pytest.raises(UnusableError, match="undefined symbol"):
        load("codec", name_of, {})


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("error", [AttributeError, TypeError, ValueError, UnusableError])
def test_what_fails_its_check_is_not_used_and_says_why(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def check(module: ModuleType) -> str:
        raise error("key is not a slot")

    monkeypatch.delenv("ETCD_AIO_PURE_PYTHON", raising=False)
    found, reason = load_if_usable("codec", check)
    assert found is None
    assert reason.startswith("pure Python (")
    assert reason.endswith("key is not a slot)")


@pytest.mark.usefixtures("installed")
def test_what_passes_its_check_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ETCD_AIO_PURE_PYTHON", raising=False)
    assert load_if_usable("watch", name_of) == ("etcd_aio.watch._speedups", "accelerated")
