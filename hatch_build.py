"""Build hook: compiles the optional accelerators where there is a C compiler. Without one the package is pure Python.

`ETCD_AIO_ACCELERATOR=no` never compiles them; `yes` makes the build fail if one cannot be compiled. Each binary serves
CPython 3.11 and every later version on its platform (`abi3`). Free-threaded builds and PyPy take the pure package.
"""

import os
import platform
import sysconfig
from pathlib import Path
from textwrap import shorten
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = ("etcd_aio.codec", "etcd_aio.transport.native", "etcd_aio.watch")  # each has `_speedups.c`
OLDEST = "cp311"  # as Py_LIMITED_API in the sources


class AcceleratorHook(BuildHookInterface[Any]):
    """Adds the compiled accelerators to a wheel, and gives the wheel the tag of its platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the accelerators, before the files of the wheel are collected."""
        wanted = os.environ.get("ETCD_AIO_ACCELERATOR", "auto")
        if wanted not in {"auto", "yes", "no"}:
            raise ValueError(f"ETCD_AIO_ACCELERATOR is yes, no or auto, not {wanted!r}")
        if wanted == "no":
            return
        try:
            built = compile_accelerators(Path(self.root))
        except Exception as error:  # a compiler, headers or a library may be missing, and each says so in its own way
            if wanted == "yes":
                raise
            reason = shorten(str(error), 120)
            self.app.display_warning(f"etcd_aio is built without its optional accelerators: {reason}")
            return
        build_data["artifacts"] += [binary.relative_to(self.root).as_posix() for binary in built]
        build_data["pure_python"] = False
        build_data["tag"] = f"{OLDEST}-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def compile_accelerators(root: Path) -> list[Path]:
    """Compile each accelerator beside its source; returns the binaries."""
    if platform.python_implementation() != "CPython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise RuntimeError("they are for CPython with its global lock")
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    # The code calls no function of the C library, but `auditwheel` tells by it for which Linux systems a wheel is.
    arguments = ["-Wl,--no-as-needed", "-lc"] if platform.system() == "Linux" else []
    extensions = [
        Extension(
            f"{package}._speedups",
            [f"{package.replace('.', '/')}/_speedups.c"],
            py_limited_api=True,
            extra_link_args=arguments,
        )
        for package in PACKAGES
    ]
    parents = ["etcd_aio", "etcd_aio.transport"]
    command = build_ext(
        Distribution({"name": "etcd_aio", "packages": [*parents, *PACKAGES], "ext_modules": extensions})
    )
    command.inplace = True
    command.force = True  # whatever another Python, or other flags, have left
    command.build_temp = str(root / "build" / "accelerator")
    before = Path.cwd()
    os.chdir(root)
    try:
        command.ensure_finalized()
        command.run()
        return [(root / command.get_ext_fullpath(extension.name)).resolve() for extension in extensions]
    finally:
        os.chdir(before)
