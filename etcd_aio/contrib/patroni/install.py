"""Install: the module by which Patroni finds `etcd3aio`, in Patroni's own package.

Patroni looks for its stores in the folder `patroni/dcs` alone: there is no entry point for others. So a module of one
line is put there. It changes no file of Patroni, and an update of Patroni by pip leaves it.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from etcd_aio.contrib.missing import missing

NAME: Final = "etcd3aio.py"
TEXT: Final = '''\
"""Made by `python -m etcd_aio.contrib.patroni install`, since Patroni finds stores in this folder alone."""

from etcd_aio.contrib.patroni.etcd3aio import Etcd3Aio as Etcd3Aio
'''


class InstallError(Exception):
    """The module cannot be put there, or taken away."""


def folder() -> Path:
    """The folder of Patroni's stores in this environment.

    Raises:
        ModuleNotFoundError: Patroni is not installed.
    """
    try:
        spec = find_spec("patroni.dcs")
    except ModuleNotFoundError as error:
        raise missing(__name__, "patroni", error, "patroni") from error
    if spec is None or spec.origin is None:
        raise missing(__name__, "patroni", ModuleNotFoundError("patroni.dcs", name="patroni.dcs"), "patroni")
    return Path(spec.origin).parent


def is_installed(where: Path) -> bool:
    """Whether the module is there.

    Raises:
        InstallError: another one is.
    """
    path = where / NAME
    if not path.exists():
        return False
    if path.read_bytes().splitlines() != TEXT.encode().splitlines():
        raise InstallError(f"{path} is not the one that this command makes: move it away first")
    return True


def install(where: Path) -> str:
    """Put the module there. Returns what was done."""
    if is_installed(where):
        return f"{where / NAME} is there"
    (where / NAME).write_text(TEXT)
    return f"{where / NAME} made: Patroni now knows the section etcd3aio"


def uninstall(where: Path) -> str:
    """Take the module away. Returns what was done."""
    if not is_installed(where):
        return f"{where / NAME} is not there"
    (where / NAME).unlink()
    return f"{where / NAME} removed"
