"""release/api.py, release/public.py: which facts the interface has, and which changes break users."""

from pathlib import Path
from pkgutil import resolve_name

import pytest

from release.api import FILE, ROOT, compare, facts_of, name_of, public_names, undocumented, unexplained
from release.public import INTERNAL, PUBLIC

SOURCES = {
    "etcd_aio/__init__.py": """
from typing import TYPE_CHECKING

from etcd_aio._inner import Client as Client
from etcd_aio._inner import connect as connect
from etcd_aio._inner import RetryMode as RetryMode
from etcd_aio._tools import tool
from etcd_aio.errors import EtcdError as EtcdError
from etcd_aio.other import hidden as _hidden

__version__ = "1.0"
""",
    "etcd_aio/_inner.py": """
from dataclasses import dataclass
from typing import Literal, TypeAlias

RetryMode: TypeAlias = Literal["safe", "never"]


class Base:
    def shared(self, key: bytes, *, limit: int = 0) -> int: ...


class Client(Base):
    def __init__(self, endpoints: str | None = None, *, timeout: float = 5.0) -> None:
        self.endpoints = endpoints
        self._secret = 1

    @property
    def is_open(self) -> bool: ...

    async def get(self, key: bytes, *keys: bytes, **options: int) -> bytes | None: ...

    def _own(self) -> None: ...


def connect(client: Client) -> None: ...
""",
    "etcd_aio/errors/__init__.py": "from etcd_aio.errors.base import EtcdError as EtcdError\n"
    "from etcd_aio.errors.base import LostError as LostError\n",
    "etcd_aio/errors/base.py": """
class EtcdError(Exception):
    code: int = 0
    def text(self) -> str: ...


class LostError(EtcdError):
    default_message = "lost"
""",
    "etcd_aio/other.py": "def hidden() -> None: ...\n",
    "etcd_aio/_tools.py": "def tool() -> None: ...\n",
    # A function has the name of its module, and a module hands names on as a package does.
    "etcd_aio/services/__init__.py": "from etcd_aio.services.follow import follow as follow\n",
    "etcd_aio/services/follow.py": "def follow() -> None: ...\n\n\nclass Batch: ...\n\n\nclass Step: ...\n",
    "etcd_aio/services/naming.py": """
from etcd_aio.services.follow import Batch as Batch
from etcd_aio.services.follow import Step
from etcd_aio.services.follow import follow as follow


class Mirror: ...
""",
    "pytest_etcd_aio/__init__.py": "",
}
FACTS = [
    "async def etcd_aio.Client.get -> bytes | None",
    "class etcd_aio.Client(Base)",
    "class etcd_aio.errors.EtcdError(Exception)",
    "class etcd_aio.errors.LostError(EtcdError)",
    "class etcd_aio.services.naming.Batch()",
    "class etcd_aio.services.naming.Mirror()",
    "def etcd_aio.Client.shared -> int",
    "def etcd_aio.connect -> None",
    "def etcd_aio.errors.EtcdError.text -> str",
    "def etcd_aio.services.follow -> None",
    "etcd_aio.Client(*, timeout: float = 5.0)",
    "etcd_aio.Client(0, endpoints: str | None = None)",
    "etcd_aio.Client.endpoints = endpoints",
    "etcd_aio.Client.get(0, key: bytes)",
    "etcd_aio.Client.get(1, *keys: bytes)",
    "etcd_aio.Client.get(2, **options: int)",
    "etcd_aio.Client.is_open: bool",
    "etcd_aio.Client.shared(*, limit: int = 0)",
    "etcd_aio.Client.shared(0, key: bytes)",
    "etcd_aio.EtcdError is etcd_aio.errors.EtcdError",
    "etcd_aio.RetryMode = Literal['safe', 'never']",
    "etcd_aio.__version__: str",
    "etcd_aio.connect(0, client: Client)",
    "etcd_aio.errors.EtcdError.code: int",
    "etcd_aio.errors.LostError.default_message = 'lost'",
    "etcd_aio.services.naming.follow is etcd_aio.services.follow",
]


def test_the_facts_of_a_package(tmp_path: Path) -> None:
    for name, text in SOURCES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert facts_of(tmp_path) == FACTS


def test_every_fact_has_a_name() -> None:
    assert [name_of(fact) for fact in FACTS[:3]] == [
        "etcd_aio.Client.get",
        "etcd_aio.Client",
        "etcd_aio.errors.EtcdError",
    ]
    assert {name_of(fact).partition(".")[0] for fact in FACTS} == {"etcd_aio"}


@pytest.mark.parametrize(
    ("before", "after", "is_breaking"),
    [
        ("etcd_aio.Client(*, timeout: float = 5.0)", "etcd_aio.Client(*, timeout: float = 2.0)", True),
        ("etcd_aio.connect(0, client: Client)", None, True),
        ("async def etcd_aio.Client.get -> bytes | None", "async def etcd_aio.Client.get -> bytes", True),
        ("etcd_aio.EtcdError is etcd_aio.errors.EtcdError", None, True),
        (None, "etcd_aio.connect(*, name: str)", True),
        (None, "etcd_aio.connect(1, name: str)", True),
        (None, "etcd_aio.connect(*, name: str = '')", False),
        (None, "etcd_aio.connect(1, **options: str)", False),
        (None, "def etcd_aio.close -> None", False),
        (None, "etcd_aio.Client.name: str", False),
    ],
)
def test_which_changes_break(before: str | None, after: str | None, is_breaking: bool) -> None:
    old = [fact for fact in FACTS if fact != after]
    new = [fact for fact in FACTS if fact != before] + ([] if after is None else [after])
    (change,) = compare(old, new)
    assert change.is_breaking == is_breaking


def test_a_new_function_may_have_parameters_that_must_be_given() -> None:
    (change,) = compare(FACTS, [*FACTS, "def etcd_aio.close -> None", "etcd_aio.close(0, client: Client)"])
    assert not change.is_breaking


def test_the_changelog_explains_what_breaks_by_its_name() -> None:
    changes = compare(FACTS, [fact for fact in FACTS if "connect" not in fact and "is_open" not in fact])
    assert [change.name for change in changes] == ["etcd_aio.Client.is_open", "etcd_aio.connect"]
    assert unexplained(changes, "- `connect` is `Client.connect` now; `client.is_open` is gone") == []
    assert [change.name for change in unexplained(changes, "- `connect_timeout`, `is_open`")] == ["etcd_aio.connect"]
    assert compare(FACTS, FACTS) == []


def test_an_object_is_documented_by_any_of_its_public_names() -> None:
    public = {"a.One": "a.module.One", "b.One": "a.module.One", "a.Two": "a.Two", "a.DEFAULT_TTL": "a.DEFAULT_TTL"}
    assert undocumented(public, {"b.One", "c.Other"}) == ["a.Two"]


@pytest.fixture(scope="module")
def present() -> list[str]:
    return facts_of(ROOT)


def test_the_file_has_the_present_interface(present: list[str]) -> None:
    """Each change of it is seen in the change that makes it, such as a method for other packages of the library."""
    written = FILE.read_text(encoding="utf-8").splitlines()
    changed = sorted(set(written) ^ set(present))
    assert not changed, f"run `python -m release.api --write`: {changed[:20]}"
    assert written == present


def test_what_is_internal_is_no_fact_and_has_a_public_owner(present: list[str]) -> None:
    facts = {name_of(fact) for fact in present}
    assert not facts & INTERNAL
    for name in INTERNAL:
        owner = name.rpartition(".")[0]
        assert owner in PUBLIC or owner in facts, name


def test_what_a_public_package_exports_at_run_time_is_a_fact() -> None:
    modules = [
        module for module in PUBLIC if not module.startswith("etcd_aio.contrib.")
    ]  # those may lack their library
    exported = {f"{module}.{name}" for module in modules for name in getattr(resolve_name(module), "__all__", ())}
    assert len(exported) > 200
    assert exported - public_names().keys() - INTERNAL - PUBLIC.keys() == set()
