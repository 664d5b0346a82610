"""Describes this machine, for the report."""

import os
import platform
from pathlib import Path


def cpu_model() -> str:
    """The name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def two_cores() -> tuple[int, int]:
    """Two cores that this process may use.

    Raises:
        OSError: there is one only, or this system cannot say.
    """
    if not hasattr(os, "sched_getaffinity"):
        raise OSError("this system does not bind processes to cores")
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        raise OSError("there is one core only")
    return usable[0], usable[1]


def use_core(core: int) -> None:
    """Bind this process, and those that it starts from now on, to a core."""
    os.sched_setaffinity(0, {core})


def system() -> str:
    """The kernel, without its vendor's suffix, and the interpreter."""
    kernel = f"{platform.system()} {platform.release().partition('-')[0]}"
    return f"{kernel}, {platform.python_implementation()} {platform.python_version()}"
