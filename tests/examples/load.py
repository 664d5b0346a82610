"""Loads an example as a module, so that a test can call its functions."""

from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

from tests.examples.paths import ROOT


def load(name: str) -> ModuleType:
    """Import the example `name`; its `main` does not run."""
    spec = spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
