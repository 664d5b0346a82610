"""What an import, and each verb of the command line, may load: so that nothing that takes long comes back unseen.

`tests/integration/test_startup.py` has the first call. A module that is missing below was added to what every program
loads: import it where it is used, or add it here if all need it.
"""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from etcd_aio.cli.program import VERBS

ROOT = Path(__file__).parent.parent

# Besides what `import asyncio` loads. Of this project the packages count, and each module of the command line.
CLIENT = frozenset(
    {
        *("_exports", "_version", "arguments", "backend", "balancer", "base", "calls", "client", "codec", "config"),
        *("dataclass", "discovery", "error_handler", "errors", "exports", "fast_frozen", "http2", "kv", "late_parts"),
        *("methods", "observing", "pb", "store", "transport", "types", "watch"),
    }
)
WITH_CLIENT = frozenset({"__future__", "bisect", "copy", "dataclasses", "hpack", "random"})
COMMAND = frozenset(
    f"cli.{name}"
    for name in (
        *("connection", "contexts", "formats", "go_text", "grammar", "outcome", "program", "session", "signals"),
        "style",
    )
) | {"_exports", "_version", "base", "cli", "config", "dataclass", "errors", "exports", "fast_frozen", "types"}
WITH_COMMAND = frozenset(
    {"click", "copy", "dataclasses", "datetime", "gc", "gettext", "platform", "shlex", "uuid", "__future__"}
)
PATHS = frozenset({"fnmatch", "ipaddress", "ntpath", "pathlib", "urllib"})
FILES = PATHS | {"bz2", "hashlib", "json", "lzma", "shutil", "tempfile", "zlib"}
MESSAGES = FILES | {
    *("betterproto2", "calendar", "csv", "decimal", "email", "fractions", "importlib", "numbers", "pydantic"),
    *("pydantic_core", "quopri", "typing_extensions", "typing_inspection", "zipfile"),
}
LOCKS = frozenset({"cli.child", "cli.job_control", "cli.lock", "concurrency", "lease"})
WITH_LOCKS = frozenset({"anyio", "sniffio", "typing_extensions"})
MAINTENANCE = CLIENT | {"cli.arguments", "cli.endpoint", "cli.maintenance", "cli.results"}
USERS = frozenset({"arguments", "cli.arguments", "cli.auth", "cli.permissions", "cli.results"})
KEYS = CLIENT | {"cli.arguments", "cli.kv"}
LOCAL = frozenset({"arguments", "cli.version", "cli.versions", "codec"})

# By verb: the modules of this project, and the others, besides those of every command.
VERB_LOADS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "get": (KEYS, WITH_CLIENT),
    "put": (KEYS, WITH_CLIENT),
    "del": (KEYS, WITH_CLIENT),
    "txn": (KEYS | {"cli.txn", "cli.txn_grammar"}, WITH_CLIENT),
    "compaction": (KEYS, WITH_CLIENT),
    "watch": (
        CLIENT | {"cli.arguments", "cli.follow", "cli.follow_text", "cli.results", "cli.watch", "cli.watch_command"},
        WITH_CLIENT | {"json"},
    ),
    "lease": (frozenset({"arguments", "cli.arguments", "cli.format_simple", "cli.lease", "cli.results"}), frozenset()),
    "alarm": (MAINTENANCE, WITH_CLIENT),
    "defrag": (MAINTENANCE, WITH_CLIENT),
    "endpoint": (MAINTENANCE, WITH_CLIENT),
    "member": (KEYS | {"cli.member", "cli.results"}, WITH_CLIENT),
    "move-leader": (MAINTENANCE, WITH_CLIENT),
    "snapshot": (MAINTENANCE, WITH_CLIENT),
    "downgrade": (MAINTENANCE, WITH_CLIENT),
    "lock": (CLIENT | LOCKS | {"cli.arguments"}, WITH_CLIENT | WITH_LOCKS),
    "elect": (CLIENT | LOCKS | {"cli.arguments", "cli.elect"}, WITH_CLIENT | WITH_LOCKS),
    "auth": (USERS, frozenset()),
    "user": (USERS, frozenset()),
    "role": (USERS, frozenset()),
    "check": (
        CLIENT | {"cli.arguments", "cli.check"},
        WITH_CLIENT | {"decimal", "fractions", "numbers", "statistics"},
    ),
    "health": (MAINTENANCE | LOCKS | {"cli.health"}, WITH_CLIENT | WITH_LOCKS),
    "top": (MAINTENANCE | LOCKS | {"cli.top", "cli.top_metrics", "cli.top_model"}, WITH_CLIENT | WITH_LOCKS | MESSAGES),
    "dump": (
        CLIENT | {"cli.arguments", "cli.dump", "cli.dump_format", "cli.dump_tree"},
        WITH_CLIENT | {"hashlib", "json"},
    ),
    "restore": (
        CLIENT | {"cli.arguments", "cli.dump_format", "cli.restore", "cli.restore_plan", "lease"},
        WITH_CLIENT | FILES,
    ),
    "make-mirror": (CLIENT | {"cli.arguments", "cli.mirror", "mirror"}, WITH_CLIENT | MESSAGES | {"hmac", "secrets"}),
    "fake": (
        frozenset({"arguments", "cli.arguments", "cli.fake", "codec", "fake", "http2", "methods", "pb", "transport"}),
        MESSAGES | {"bisect", "difflib", "hpack", "random"},
    ),
    "context": (frozenset({"cli.arguments", "cli.context"}), PATHS),
    "completion": (frozenset({"cli.arguments", "cli.completion"}), frozenset()),
    "version": (LOCAL, frozenset()),
    "options": (LOCAL, frozenset()),
}

LOAD_VERB = """
import click, sys
from etcd_aio.cli.program import program
assert program().get_command(click.Context(program()), sys.argv[1])
"""


def modules(code: str, *words: str) -> set[str]:
    """The modules that are loaded after some code, in a process of its own."""
    command = [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)", *words]
    done = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)
    return set(done.stdout.splitlines()[-1].split())


@cache
def always() -> frozenset[str]:
    return frozenset(modules("import asyncio"))


def loaded(code: str, *words: str) -> tuple[set[str], set[str]]:
    """The packages of this project that some code loads, and the others besides those of asyncio."""
    own, others = set[str](), set[str]()
    for module in modules(code, *words) - always():
        parts = module.split(".")
        if parts[0] != "etcd_aio":
            others.add(parts[0])
        elif len(parts) > 1:
            own.add(".".join(parts[1:3] if parts[1] == "cli" else parts[1:2]))
    return own, {name for name in others if not name.startswith("_") or name == "__future__"}


def test_the_package_loads_its_table_of_names_alone() -> None:
    assert loaded("import etcd_aio") == ({"_exports", "_version", "exports"}, set())
    assert not {"asyncio", "inspect", "ssl", "socket"} & modules("import etcd_aio")


def test_the_client_loads_what_a_get_needs() -> None:
    own, others = loaded("from etcd_aio import Client")
    assert own == CLIENT
    assert others == WITH_CLIENT


def test_a_dataclass_is_not_completed_by_an_import() -> None:
    code = "import etcd_aio.dataclass as it; from etcd_aio import Client; print(len(it._incomplete))\n"
    count = subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True).stdout
    assert int(count) > 40


def test_every_verb_is_listed() -> None:
    assert [*VERB_LOADS] == [*VERBS]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_loads_no_more_than_it_needs(verb: str) -> None:
    own, others = loaded(LOAD_VERB, verb)
    may_own, may_others = VERB_LOADS[verb]
    assert own - COMMAND - may_own == set()
    assert others - WITH_COMMAND - may_others == set()


def test_the_version_is_told_without_a_parser_and_without_a_client() -> None:
    code = "import sys; sys.argv[1:] = ['version']; from etcd_aio.cli import main; main()"
    found = modules(code)
    assert not {"click", "betterproto2", "etcd_aio.client"} & found
