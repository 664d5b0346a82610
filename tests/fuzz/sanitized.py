"""Compiles the accelerators with gcc's address and undefined-behaviour sanitizers, and runs a program with them."""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from importlib.machinery import ExtensionFileLoader
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("etcd_aio.codec", "etcd_aio.transport.native", "etcd_aio.watch")
VARIABLE = "ETCD_AIO_FUZZ_SANITIZED"
FLAGS = ("-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def run_sanitized(module: str, arguments: list[str]) -> int:
    """Compile the accelerators with sanitizers, and run a module with them. Returns its exit code."""
    binaries: dict[str, str] = {}
    for package in PACKAGES:
        folder = ROOT / package.replace(".", "/")
        binary = ROOT / "build" / "sanitized" / package / "_speedups.abi3.so"
        binary.parent.mkdir(parents=True, exist_ok=True)
        include = sysconfig.get_path("include")
        command = ["gcc", *FLAGS, "-shared", "-fPIC", f"-I{include}", "-o", str(binary), str(folder / "_speedups.c")]
        subprocess.run(command, check=True)
        binaries[f"{package}._speedups"] = str(binary)
    libraries = [
        subprocess.run(["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    environ = {
        **os.environ,
        VARIABLE: json.dumps(binaries),
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps much until it ends
        "PYTHONMALLOC": "malloc",  # each object is a block of its own, whose ends are guarded
    }
    return subprocess.run([sys.executable, "-m", module, *arguments], env=environ, check=False).returncode


def is_sanitized() -> bool:
    """Whether this process was started by `run_sanitized`."""
    return VARIABLE in os.environ


def use_sanitized() -> None:
    """Load the binaries of `run_sanitized`, if they are there, in place of the installed accelerators."""
    for name, path in json.loads(os.environ.get(VARIABLE, "{}")).items():
        loader = ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        assert spec is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        loader.exec_module(sys.modules[name])
