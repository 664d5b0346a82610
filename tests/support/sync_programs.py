"""Programs that use `etcd_aio.sync`, each in a process of its own: they fork, are interrupted, and end."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.support.until import PATIENCE

ROOT = Path(__file__).parents[2]

PROLOGUE = """
import faulthandler, json, multiprocessing, os, signal, sys, threading, time
from etcd_aio.errors import *
from etcd_aio.sync import Client

faulthandler.register(signal.SIGALRM, chain=True)  # which then ends the process
signal.alarm(200)
signal.signal(signal.SIGINT, signal.default_int_handler)
endpoint, number = sys.argv[1], int(sys.argv[2])
"""


def run_program(program: str, endpoint: str, number: int = 0, file: Path | None = None) -> str:
    """Run a program, and check that it ends well. Returns its output.

    Args:
        program: its code, below `PROLOGUE`.
        endpoint: its first argument, of the name `endpoint`.
        number: the second one, `number`.
        file: where it is written to; processes that `multiprocessing` spawns need that.
    """
    text = PROLOGUE + textwrap.dedent(program)
    if file is not None:
        file.write_text(text, encoding="utf-8")
    command = [sys.executable, "-W", "error", *(["-c", text] if file is None else [str(file)]), endpoint, str(number)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environ, check=False)
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    assert ended.stderr == "", ended.stderr
    return ended.stdout
