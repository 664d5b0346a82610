"""What machine this is, for the report."""

import os
import platform
from pathlib import Path


def cpu_model() -> str:
    """The processor's name, as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cores() -> int:
    """How many cores this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def system() -> str:
    """Kernel, without what its vendor calls it, and interpreter."""
    kernel = f"{platform.system()} {platform.release().partition('-')[0]}"
    return f"{kernel}, {platform.python_implementation()} {platform.python_version()}"
