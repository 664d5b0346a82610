"""Histories of the client, judged by etcd's own validators: `python -m tests.evidence --quick`.

Each report is written on three members of one release while they fail, and judged while the next one is written. Of a
report that was judged right, a line of results and a picture are kept, of others everything. Reports that were judged
right before are skipped. The exit status is 1 if one is wrong or could not be written, and 0 with a reason if there is
no judge or no server. Several processes may share a file of results, for different releases or seeds.
"""

import argparse
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from etcd_aio.testing import EtcdNotFoundError, available_etcds, find_etcd
from tests.evidence import report, results
from tests.evidence.judging import Judging, NoJudgeError, build, keep_picture, why
from tests.evidence.plan import Plan, Size, draw, numbers

FOLDER: Final = Path("build/evidence")
_QUICK: Final = ((1, 7, 12), Size(6000, 25.0, rate=20.0, rest=0.7))  # each engine, both loops, authentication and TLS
_ATTEMPTS: Final = 30  # reports in which a sabotage must be found


def main() -> int:
    """Write reports and have them judged."""
    parser = argparse.ArgumentParser(prog="nox -s evidence --", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="three short reports on the newest release")
    parser.add_argument("--reports", type=int, default=8, help="for each release")
    parser.add_argument("--release", action="append", help="such as 3.7.3; may be repeated; default: all from 3.5 on")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", help="such as 7 or 1:100, in place of --reports")
    parser.add_argument("--operations", type=int, default=20_000, help="of each report, at most")
    parser.add_argument("--seconds", type=float, default=120.0, help="of each report, at most")
    parser.add_argument(
        "--rate", type=float, default=0.0, help="calls a second of each worker; 0: as many as are answered"
    )
    parser.add_argument("--rest", type=float, default=2.0, help="seconds between two faults, at most")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the reports")
    parser.add_argument("--results", type=Path, help="the file that gets the results; default: in the folder")
    parser.add_argument("--sabotage", help="the name of a defect that the client has; or 'all'")
    given = parser.parse_args()
    try:
        judge = build()
        releases = _releases(given.release, quick=given.quick or given.sabotage)
    except (NoJudgeError, EtcdNotFoundError) as error:
        print(f"skipped: {error}")
        return 0
    path = given.results or given.folder / "results.json"
    if given.sabotage:
        return _sabotaged(given, judge, releases[0], path)
    seeds: Sequence[int] = range(given.first, given.first + given.reports)
    size = Size(given.operations, given.seconds, given.rate, given.rest)
    if given.quick:
        seeds, size = _QUICK
    elif given.seeds:
        seeds = numbers(given.seeds)
    plans = [draw(release, seed, size, has_uvloop=_has_uvloop()) for seed in seeds for release in releases]
    done = set() if given.quick else results.known(results.read(path))
    left = [plan for plan in plans if (plan.release, plan.seed) not in done]
    print(f"{len(plans)} reports on {', '.join(releases)}, {len(plans) - len(left)} of them judged before")
    began, operations, judged, wrong = time.monotonic(), 0, 0, 0
    for line in _judged(left, given.folder, judge):
        results.add(path, "runs", line, ("release", "seed"))
        operations += line["operations"]
        judged, wrong = judged + 1, wrong + bool(line["broken"])
        minutes = (time.monotonic() - began) / 60
        print(f"  {operations} operations in {minutes:.1f} minutes, {operations / minutes:.0f} a minute", flush=True)
    print(f"{len(left)} reports, {judged} judged, {wrong} wrong")
    return 1 if wrong or judged < len(left) else 0


def _judged(plans: Sequence[Plan], folder: Path, judge: Path) -> Iterator[results.Result]:
    """Write reports; each is judged while the next one is written."""
    before: tuple[Plan, dict[str, Any], Judging] | None = None
    for plan in plans:
        try:
            facts = report.run(plan, folder / plan.name)
        except Exception:
            # A member that does not start, or is not healthy in time. A later run writes this report again.
            print(f"{plan.name}: NOT WRITTEN\n{traceback.format_exc()}", flush=True)
            continue
        if before is not None:
            yield from _ended(*before)
        before = plan, facts, Judging(judge, folder / plan.name).start()
    if before is not None:
        yield from _ended(*before)


def _ended(plan: Plan, facts: dict[str, Any], judging: Judging) -> Iterator[results.Result]:
    try:
        line = results.result(facts, judging.verdict())
    except RuntimeError as error:
        print(f"{plan.name}: NOT JUDGED\n{error}", flush=True)
        return
    how = [plan.engine, plan.loop, *["auth"] * plan.has_auth, *["TLS"] * plan.has_tls]
    found = "right" if not line["broken"] else f"WRONG: {'; '.join(line['broken'])} ({why(judging.folder)})"
    faults = sum(line["faults"].values())
    counted = f"{line['operations']} operations, {line['events']} events, {faults} faults"
    print(f"{plan.name} {' '.join(how)}: {counted}: {found}", flush=True)
    if not line["broken"]:
        for part in (*judging.folder.glob("server-*"), *judging.folder.glob("client-*"), judging.folder / "secrets"):
            shutil.rmtree(part)
        keep_picture(judging.folder)
    yield line


def _releases(wanted: Iterable[str] | None, *, quick: bool) -> list[str]:
    """The releases to judge: the wanted ones, or the newest, or the newest of each minor version."""
    if wanted:
        return [find_etcd(version).version for version in wanted]
    if quick:
        return [find_etcd(">=3.5").version]
    found: dict[tuple[int, ...], str] = {}
    for binary in available_etcds():
        if binary.version_info >= (3, 5, 3):
            found.setdefault(binary.version_info[:2], binary.version)
    if not found:
        raise EtcdNotFoundError("there is no etcd of 3.5.3 or newer: `nox -s servers` gets them")
    return sorted(found.values())


def _has_uvloop() -> bool:
    return find_spec("uvloop") is not None


def _sabotaged(given: argparse.Namespace, judge: Path, release: str, path: Path) -> int:
    """Break the client, and have reports judged until it is found."""
    from tests.evidence import sabotage

    if given.sabotage == "all":
        missed = 0
        for name in sabotage.ALL:
            command = [sys.executable, "-m", "tests.evidence", "--sabotage", name, "--release", release]
            missed += subprocess.run([*command, "--folder", given.folder, "--results", path], check=False).returncode
        return 1 if missed else 0
    broken = sabotage.ALL[given.sabotage]
    broken.function()
    operations = 0
    folder = given.folder / given.sabotage
    for seed in range(given.first, given.first + _ATTEMPTS):
        plan = broken.plan(draw(release, seed, Size(2000, 20.0, rate=15.0, rest=0.4), has_uvloop=_has_uvloop()))
        for line in _judged([plan], folder, judge):
            operations += line["operations"]
            if line["broken"]:
                said = why(folder / plan.name)
                found = {"name": given.sabotage, "what": broken.text, "by": line["broken"], "why": said}
                found |= {"operations": operations, "reports": seed - given.first + 1, "release": release}
                results.add(path, "sabotages", found, ("name",))
                shutil.rmtree(folder)
                print(f"{given.sabotage}: found after {operations} operations")
                return 0
    print(f"{given.sabotage}: NOT found in {operations} operations")
    return 1


if __name__ == "__main__":
    sys.exit(main())
