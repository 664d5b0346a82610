"""The canary sings: each way in which a secret could be seen is tried, and the test that lets it be seen fails."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from etcd_aio.errors import AttemptFailure, Delivery, EtcdError, StatusCode
from tests.support.canary import LeakDetector, chain, secret

LEAKS = """
import logging, sys, warnings
import pytest
from etcd_aio.errors import ConfigError, EtcdError

CANARY = "".join(["c4n", "4ry"])

def test_log():
    logging.getLogger("etcd_aio.x").warning("password %s", CANARY)
def test_debug_log():
    logging.getLogger("etcd_aio.x").debug("password %s", CANARY)
def test_log_with_a_traceback():
    try:
        raise OSError(CANARY)
    except OSError:
        logging.getLogger("etcd_aio.x").warning("failed", exc_info=True)
def test_output():
    print(CANARY)
def test_errors():
    print(CANARY, file=sys.stderr)
def test_warning():
    warnings.warn(CANARY)
def test_made():
    ConfigError("see " + CANARY)
def test_noted():
    EtcdError().add_note(CANARY)
def test_caught():
    with pytest.raises(ValueError):
        raise ValueError(CANARY)
def test_caught_with_its_cause():
    with pytest.raises(OSError):
        try:
            raise ValueError(CANARY)
        except ValueError:
            raise OSError from None
def test_raised():
    raise ValueError(CANARY)

@pytest.fixture
def leaking():
    yield
    print(CANARY)
def test_left_behind_by_a_fixture(leaking):
    pass

def test_line_end_in_a_log():
    logging.getLogger("etcd_aio.x").warning("one line %s", "\\nand another")
def test_control_character_in_a_note():
    EtcdError("no secret").add_note("\\x1b[31m")

def test_nothing():
    EtcdError("no secret\\n")
"""


@pytest.mark.slow
def test_a_test_in_which_a_secret_is_seen_fails(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_leaks.py").write_text(LEAKS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=no", "-rA", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    output = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False).stdout
    outcomes = set(re.findall(r"^(FAILED|PASSED|ERROR) test_leaks\.py::(\w+)", output, re.MULTILINE))
    expected = {("FAILED", name) for name in re.findall(r"^def (test_\w+)", LEAKS, re.MULTILINE)}
    innocent = {"test_left_behind_by_a_fixture", "test_nothing"}
    expected = {("PASSED" if name in innocent else outcome, name) for outcome, name in expected}
    assert outcomes == expected | {("ERROR", "test_left_behind_by_a_fixture")}


def test_what_is_told_of_a_leak_does_not_leak() -> None:
    detector = LeakDetector()
    detector.look("here", "harmless", secret())
    detector.look("there", "harmless")
    assert detector.seen() == ["here"]
    assert detector.seen() == []


def test_every_error_that_belongs_to_one_is_looked_at_once() -> None:
    cause, context, part = ValueError(), KeyError(), OSError()
    group = ExceptionGroup("group", [part])
    group.__cause__, group.__context__ = cause, context
    cause.__context__ = group
    found = list(chain(group))
    assert len(found) == 4
    assert {id(one) for one in found} == {id(one) for one in (group, cause, context, part)}


def test_errors_are_as_before_once_the_detector_is_removed() -> None:
    before = [dict(vars(kind)) for kind in (EtcdError, AttemptFailure, pytest.RaisesExc)]
    end = LeakDetector().install()
    assert AttemptFailure(StatusCode.UNKNOWN, "text", Delivery.UNKNOWN).message == "text"
    end()
    assert [dict(vars(kind)) for kind in (EtcdError, AttemptFailure, pytest.RaisesExc)] == before
