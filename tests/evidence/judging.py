"""Builds the judge, and has it judge reports."""

import gzip
import hashlib
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from etcd_aio.testing.binaries import cache_directory

SOURCE: Final = Path(__file__).parent / "judge"
_BUILD_SECONDS: Final = 900
_JUDGE_SECONDS: Final = 1800
_SUMMARIES: Final = ("Linearization illegal", "Watch validation failed", "Serializable validation failed")


class NoJudgeError(RuntimeError):
    """The judge cannot be built here."""


def build() -> Path:
    """The judge's binary, built by Go unless this very source was built before.

    Raises:
        NoJudgeError: Go is missing, or it could not build it.
    """
    digest = hashlib.sha256()
    for file in sorted(path for path in SOURCE.iterdir() if not path.name.endswith("_test.go")):
        digest.update(file.read_bytes())
    binary = cache_directory() / "judge" / digest.hexdigest()[:16]
    if binary.exists():
        return binary
    if shutil.which("go") is None:
        raise NoJudgeError("Go is not here, which the judge is built by: https://go.dev/dl/")
    binary.parent.mkdir(parents=True, exist_ok=True)
    command = ["go", "build", "-buildvcs=false", "-o", str(binary), "."]
    done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False)
    if done.returncode:
        raise NoJudgeError(f"the judge could not be built:\n{done.stderr.strip()[-2000:]}")
    return binary


@dataclass(slots=True)
class Judging:
    """A report that is being judged, beside whatever else happens.

    Args:
        judge: the binary.
        folder: of the report.
    """

    judge: Path
    folder: Path
    _process: "subprocess.Popen[str] | None" = None

    def start(self) -> "Judging":
        """Begin."""
        with (self.folder / "judge.out").open("w") as out, (self.folder / "judge.err").open("w") as err:
            self._process = subprocess.Popen([self.judge, self.folder], stdout=out, stderr=err, text=True)
        return self

    def verdict(self) -> dict[str, Any]:
        """Wait for the verdict.

        Raises:
            RuntimeError: the judge has none.
        """
        assert self._process is not None
        try:
            self._process.wait(_JUDGE_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
        text = (self.folder / "judge.out").read_text()
        if not text:
            told = (self.folder / "judge.err").read_text()
            raise RuntimeError(f"no verdict about {self.folder}: {told[-2000:]}")
        verdict: dict[str, Any] = json.loads(text)
        return verdict


def keep_picture(folder: Path) -> None:
    """Compress porcupine's picture of a history, which is a hundred times as large as all else that is kept."""
    picture = folder / "history.html"
    with picture.open("rb") as whole, gzip.open(folder / "history.html.gz", "wb", compresslevel=5) as small:
        shutil.copyfileobj(whole, small)
    picture.unlink()


def why(folder: Path) -> str:
    """What the validators say about what is broken: the first lines of their log, each one's message and guarantee."""
    log = folder / "judge.log"
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    told = (" ".join(filter(None, (line["msg"], line.get("guarantee")))) for line in lines)
    return "; ".join(text for text in dict.fromkeys(told) if text not in _SUMMARIES)
