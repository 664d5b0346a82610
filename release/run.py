"""Runs every check of a release, and reports all that fail: `python -m release [--tag v0.1.0] [PYTHON ...]`.

It leaves in `dist/` what is published: the archives, the notes, and a bill of materials of what was installed. With
`--tag` the release is about to be published: then the commit must be clean, and what matters only on a package index
counts too; without, it is listed at the end.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

from etcd_aio.testing import EtcdServer
from release import api, archives, build, install, sbom
from release.version import notes, read_version, tag_problems

ROOT: Final = Path(__file__).parent.parent
DIST: Final = ROOT / "dist"
BUILDS: Final = "two builds"
NOTES: Final = "release-notes.md"
_NOT_IN_WHEEL: Final = frozenset({".c", ".pyc", ".pyd", ".so"})  # of the pure wheel
INSTALLED: Final = "installed.cdx.json"


class Release:
    """One release, and its checks: each returns what is wrong.

    Args:
        tag: the tag that is about to be published; None for a rehearsal.
        pythons: the versions to install on, such as "3.13" or "3.14t".
    """

    def __init__(self, tag: str | None, pythons: Sequence[str]) -> None:
        self.tag = tag
        self.pythons = pythons
        self.newest = [python for python in pythons if not python.endswith("t")][
            -1
        ]  # an extra may need compiled wheels
        self.version = read_version(_read("etcd_aio/_version.py"))
        self.later: list[str] = []
        self.wheel = self.sdist = Path()

    def checks(self) -> list[tuple[str, Callable[[], list[str]]]]:
        """The checks in order, by their names."""
        installs = [(python, kind) for python in self.pythons for kind in ("wheel", "sdist")]
        return [
            ("version and changelog", self.check_version),
            ("public interface", self.check_interface),
            ("bill of materials", self.check_materials),
            (BUILDS, self.check_builds),
            ("content and metadata", self.check_contents),
            *((f"{kind}, Python {python}", partial(self.check_install, python, kind)) for python, kind in installs),
            (f"extras, Python {self.newest}", self.check_extras),
            ("without dependencies", self.check_bare),
        ]

    def _before_publishing(self, problems: list[str]) -> list[str]:
        """The problems, if the release is about to be published; else they are kept for the end."""
        if self.tag is not None:
            return problems
        self.later += problems
        return []

    def check_version(self) -> list[str]:
        """The tag, the version, the changelog and `CITATION.cff` belong together, and to this commit."""
        found = tag_problems(self.tag or f"v{self.version}", self.version, _read("CHANGELOG.md"))
        found += [f"not in the commit: {name}" for name in build.changed_files()]
        is_cited = f"\nversion: {self.version}\n" in _read("CITATION.cff")
        return self._before_publishing(found) + ([] if is_cited else ["CITATION.cff has another version"])

    def check_interface(self) -> list[str]:
        """The changelog names what is gone from the public interface, and `api.txt` has the present one."""
        now = api.facts_of(ROOT)
        reference, changes, missing = api.check(now)
        _say(f"{len(changes)} names differ from {reference}")
        is_current = api.FILE.read_text(encoding="utf-8").splitlines() == now
        return [
            *(f"breaking, and not in the changelog: {change.name}" for change in missing),
            *([] if is_current else ["release/api.txt is out of date: see CONTRIBUTING.md, `Releases`"]),
        ]

    def check_materials(self) -> list[str]:
        """The bill of materials in the wheel has what the package contains and needs, in valid CycloneDX."""
        text = sbom.FILE.read_text(encoding="utf-8")
        is_current = text == sbom.current()
        return sbom_errors(text) + ([] if is_current else ["run `python -m release.sbom --write`"])

    def check_builds(self) -> list[str]:
        """Two builds are equal, byte by byte."""
        try:
            self.wheel, self.sdist = build.build_twice(DIST)
        except build.NotReproducibleError as error:
            return str(error).splitlines()
        for path in (self.wheel, self.sdist):
            _say(f"{path.name}: {path.stat().st_size:,} bytes, sha256 {build.digest(path)}")
        (DIST / NOTES).write_text(notes(_read("CHANGELOG.md"), self.version) + "\n", encoding="utf-8")
        return []

    def check_contents(self) -> list[str]:
        """The archives have what belongs there and nothing else, and metadata that an index takes."""
        packages = [path for name in ("etcd_aio", "pytest_etcd_aio") for path in (ROOT / name).rglob("*")]
        sources = {
            path.relative_to(ROOT).as_posix()
            for path in packages
            if path.is_file() and path.suffix not in _NOT_IN_WHEEL
        }
        metadata = archives.read_wheel_metadata(self.wheel)
        return [
            *archives.wheel_problems(archives.wheel_names(self.wheel), sources),
            *archives.sdist_problems(archives.sdist_names(self.sdist)),
            *archives.metadata_problems(metadata, archives.read_sdist_metadata(self.sdist), self.version),
            *_output_if_failed([sys.executable, "-m", "twine", "check", "--strict", str(self.wheel), str(self.sdist)]),
            *self._before_publishing(archives.publishing_problems(metadata)),
        ]

    def check_install(self, python: str, kind: str) -> list[str]:
        """An archive works in an empty environment, and so does the code of the README, on a real etcd."""
        with install.environment(f"python{python}") as env:
            env.install(str(self.wheel if kind == "wheel" else self.sdist))
            env.check()
            told = install.smoke(env, self.version)
            asyncio.run(_readme(env))
            _say(f"Python {told['python']}{', free-threaded' if told['free_threaded'] else ''}")
            if kind == "wheel" and python == self.newest:
                return _write_installed(env)
        return []

    def check_extras(self) -> list[str]:
        """Each extra alone, and all together, brings what the modules say that it brings."""
        message = archives.read_message(archives.read_wheel_metadata(self.wheel))
        extras = sorted(map(str, message.get_all("Provides-Extra", [])))
        problems = []
        for chosen in ([extra] for extra in extras), (extras,):
            for names in chosen:
                with install.environment(f"python{self.newest}") as env:
                    env.install(f"{self.wheel}[{','.join(names)}]")
                    env.check()
                    lacking = install.smoke(env, self.version)["lacking"]
                assert isinstance(lacking, dict)
                for module, text in lacking.items():
                    problems += [f"{module} with [{name}]: {text}" for name in names if f"etcd_aio[{name}]" in text]
        _say(f"{', '.join(extras)}")
        return problems

    def check_bare(self) -> list[str]:
        """Without its dependencies, the import names one of them."""
        with install.environment(f"python{self.newest}") as env:
            env.install(str(self.wheel), has_dependencies=False)
            try:
                env.run("-c", "import etcd_aio")
            except install.InstallError as error:
                last = str(error).strip().splitlines()[-1]
                _say(last)
                return [] if last.startswith("ModuleNotFoundError: No module named") else [last]
        return ["`import etcd_aio` works without its dependencies"]


def sbom_errors(text: str) -> list[str]:
    """What the schema of CycloneDX has against a bill of materials."""
    # Imported by name, so that the type checkers need no library that only this session has.
    version = import_module("cyclonedx.schema").SchemaVersion.V1_6
    error = import_module("cyclonedx.validation.json").JsonStrictValidator(version).validate_str(text)
    return [] if error is None else [f"the bill of materials is invalid: {error}"]


async def _readme(env: install.Environment) -> None:
    async with EtcdServer() as server:
        await asyncio.to_thread(install.run_readme, env, _read("README.md"), server.endpoint)


def _write_installed(env: install.Environment) -> list[str]:
    """Write a bill of materials of an environment into `dist/`: the versions with which this release was examined."""
    target = DIST / INSTALLED
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--spec-version", "1.6"]
    found = _output_if_failed([*command, "--output-file", str(target), str(env.python)])
    return found or sbom_errors(target.read_text(encoding="utf-8"))


def _output_if_failed(command: Sequence[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [*done.stdout.splitlines(), *done.stderr.splitlines()]


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _say(text: str) -> None:
    sys.stdout.write(f"    {text}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks. Returns the exit code: 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m release", description="Build and judge a release.")
    parser.add_argument("--tag", help="the tag that is about to be published, such as v0.1.0; default: a rehearsal")
    parser.add_argument("pythons", nargs="*", help="versions to install on; default: this one")
    options = parser.parse_args(arguments)
    if not (ROOT / ".git").exists():
        parser.error("a release is built from a checkout of git: the time of its commit is in the archives")
    release = Release(options.tag, options.pythons or [f"{sys.version_info.major}.{sys.version_info.minor}"])
    passed = failed = 0
    for name, check in release.checks():
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()
        start = time.monotonic()
        try:
            problems = check()
        except (install.InstallError, OSError, RuntimeError, subprocess.SubprocessError) as error:
            problems = [f"{type(error).__name__}: {error}"]
        failed += bool(problems)
        passed += not problems
        for problem in problems:
            _say(f"WRONG: {problem}")
        _say(f"{'failed' if problems else 'ok'} after {time.monotonic() - start:.0f} s")
        if name == BUILDS and problems:
            break  # there is nothing to examine
    if release.later:
        sys.stdout.write("before it is published\n")
        for problem in release.later:
            _say(problem)
    sys.stdout.write(f"{passed} passed, {failed} failed\n")
    return bool(failed)
