"""Instances of the service as processes of this machine."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

EXAMPLES = Path(__file__).parent.parent


class Instance:
    """An instance: `with Instance(port, endpoints) as instance:`. Leaving stops it as a deployment would, by SIGTERM.

    Args:
        port: where it serves.
        endpoints: of etcd.
        log: gets what it prints; its own output by default.
    """

    def __init__(self, port: int, endpoints: Iterable[str], log: Path | None = None) -> None:
        self.address = f"127.0.0.1:{port}"
        self.url = f"http://{self.address}"
        self._port = port
        self._endpoints = ",".join(endpoints)
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        paths = [str(EXAMPLES), str(EXAMPLES.parent), os.environ.get("PYTHONPATH", "")]
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "ETCD_ENDPOINTS": self._endpoints,
            "SERVICE_ADDRESS": self.address,
        }
        command = [sys.executable, "-m", "uvicorn", "service.app:app", "--port", str(self._port), "--no-access-log"]
        with Path(self._log or os.devnull).open("ab") as log:
            output = None if self._log is None else log
            self._process = subprocess.Popen(command, env=env, stdout=output, stderr=output)

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self, seconds: float = 30.0) -> int:
        """End it by SIGTERM, and by SIGKILL if that takes too long. Returns its exit status."""
        assert self._process is not None
        self._process.terminate()
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
