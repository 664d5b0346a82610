"""mirror/checkpoint.py: its value, its answers, and that no order of copies breaks a mirror, by a random model."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio import KeyValue
from etcd_aio.mirror.checkpoint import Checkpoint, CheckpointVerdict, judge
from tests.support.tiers import nightly_examples

OURS = Checkpoint(7, b"a/", b"b/", 5, is_complete=True, writer="me", number=3)


@given(
    st.integers(0, 2**64 - 1),
    st.binary(),
    st.binary(),
    st.integers(0, 2**63),
    st.booleans(),
    st.text(),
    st.integers(0, 9),
)
def test_the_value_has_all_of_it(
    cluster_id: int, prefix: bytes, to_prefix: bytes, revision: int, is_complete: bool, writer: str, number: int
) -> None:
    checkpoint = Checkpoint(cluster_id, prefix, to_prefix, revision, is_complete, writer, number)
    assert Checkpoint.parse(checkpoint.encode()) == checkpoint


@given(st.binary() | st.from_type(type(None)).map(lambda _: b"{}"))
def test_other_values_are_no_checkpoints(value: bytes) -> None:
    assert Checkpoint.parse(value) is None


@pytest.mark.parametrize(
    "change",
    [
        {"cluster_id": 7},
        {"cluster_id": "x"},
        {"prefix": "\u20ac"},
        {"to_prefix": "\u20ac"},
        {"revision": "5"},
        {"revision": True},
        {"number": None},
    ],
)
def test_a_value_of_another_kind_is_no_checkpoint(change: dict[str, object]) -> None:
    fields = json.loads(OURS.encode())
    assert Checkpoint.parse(json.dumps(fields).encode()) == OURS
    assert Checkpoint.parse(json.dumps(fields | change).encode()) is None
    del fields[next(iter(change))]
    assert Checkpoint.parse(json.dumps(fields).encode()) is None


@pytest.mark.parametrize(
    ("cluster_id", "prefix", "to_prefix", "revision", "resumes"),
    [
        (7, b"a/", b"b/", 5, True),
        (7, b"a/", b"b/", 9, True),
        (7, b"a/", b"b/", 4, False),
        (8, b"a/", b"b/", 5, False),
        (7, b"a", b"b/", 5, False),
        (7, b"a/", b"a/", 5, False),
    ],
)
def test_when_a_mirror_goes_on(cluster_id: int, prefix: bytes, to_prefix: bytes, revision: int, resumes: bool) -> None:
    assert OURS.resumes(cluster_id, prefix, to_prefix, revision) is resumes
    uncopied = replace(OURS, revision=0)
    assert not uncopied.resumes(cluster_id, prefix, to_prefix, revision), "the first copy was not completed"


@pytest.mark.parametrize(
    ("before", "found", "verdict"),
    [
        (OURS, replace(OURS, number=4), CheckpointVerdict.APPLIED),
        (OURS, replace(OURS, number=2), CheckpointVerdict.WENT_BACK),
        (OURS, None, CheckpointVerdict.MISSING),
        (OURS, replace(OURS, writer="other", number=1), CheckpointVerdict.CONFLICT),
        (replace(OURS, writer="other"), replace(OURS, writer="other", number=4), CheckpointVerdict.MOVED),
        (replace(OURS, writer="other"), replace(OURS, writer="other", number=5), CheckpointVerdict.CONFLICT),
        (replace(OURS, writer="other"), replace(OURS, writer="third", number=4), CheckpointVerdict.CONFLICT),
        (replace(OURS, writer="other"), replace(OURS, writer="third", number=1), CheckpointVerdict.MOVED),
        (Checkpoint(7, b"a/", b"b/"), replace(OURS, writer="other", number=1), CheckpointVerdict.MOVED),
        (Checkpoint(7, b"a/", b"b/"), replace(OURS, writer="other", number=2), CheckpointVerdict.CONFLICT),
    ],
)
def test_what_an_answer_means(before: Checkpoint, found: Checkpoint | None, verdict: CheckpointVerdict) -> None:
    write = replace(OURS, number=4)
    kv = None if found is None else KeyValue(b"c", found.encode(), mod_revision=9)
    assert judge(write, before, kv) is verdict


def test_something_else_under_the_key_is_read_again() -> None:
    assert judge(OURS, OURS, KeyValue(b"c", b"hello")) is CheckpointVerdict.MISSING


# The model: mirrors that die and are replaced, whose txns are copied, delayed and lost.

Write: TypeAlias = tuple[int, Checkpoint]  # m, and what it puts


class Model:
    """A source with a number of revisions, a destination that has applied some, and the copies that travel."""

    def __init__(self) -> None:
        self.source = 1
        self.revision = 1
        self.mod = 1
        self.checkpoint = Checkpoint(7, b"", b"", 1, is_complete=True, writer="first", number=1)
        self.applied = [1]
        self.copies: list[Write] = []

    def apply(self, write: Write) -> bool:
        m, checkpoint = write
        if m != self.mod:
            return False
        self.revision += 1
        self.mod, self.checkpoint = self.revision, checkpoint
        self.applied.append(checkpoint.revision)
        return True


class MirrorModel:
    """A mirror: it loads the checkpoint, and then writes each revision that it does not have, one write at a time."""

    def __init__(
        self, name: str, judge: Callable[[Checkpoint, Checkpoint, KeyValue | None], CheckpointVerdict]
    ) -> None:
        self.name, self.number = name, 0
        self.judge = judge
        self.m = 0
        self.before: Checkpoint | None = None
        self.write: Write | None = None
        self.has_ended = False

    def step(self, model: Model, *, is_applied: bool, is_answered: bool) -> None:
        if self.before is None:
            self.before, self.m = model.checkpoint, model.mod
            return
        if self.write is None:
            if self.before.revision == model.source:
                return
            self.number += 1
            revision = self.before.revision + 1
            self.write = (self.m, replace(self.before, revision=revision, writer=self.name, number=self.number))
        model.copies.append(self.write)
        if not is_applied:
            return
        holds = model.apply(self.write)
        if not is_answered:
            return
        made = self.write[1]
        found = KeyValue(b"c", model.checkpoint.encode(), mod_revision=model.mod)
        verdict = CheckpointVerdict.APPLIED if holds else self.judge(made, self.before, found)
        if verdict is CheckpointVerdict.APPLIED:
            self.before, self.m, self.write = made, model.mod, None
        elif verdict is CheckpointVerdict.CONFLICT:
            self.has_ended = True
        else:
            self.before, self.write = None, None


def run_model(
    actions: list[tuple[int, bool, bool, int]],
    judge: Callable[[Checkpoint, Checkpoint, KeyValue | None], CheckpointVerdict] = judge,
) -> None:
    model = Model()
    mirrors = [MirrorModel("0", judge), MirrorModel("1", judge)]
    for at, (action, is_applied, is_answered, which) in enumerate(actions):
        match action:
            case 0 | 1:
                model.source += 1
            case 2 if model.copies:  # a copy arrives late
                model.apply(model.copies[which % len(model.copies)])
            case 3:  # one dies, and is started again
                mirrors[which % 2] = MirrorModel(f"{which % 2}.{at}", judge)
            case _:
                mirror = mirrors[which % 2]
                if not mirror.has_ended:
                    mirror.step(model, is_applied=is_applied, is_answered=is_answered)
        assert model.applied == list(range(1, len(model.applied) + 1)), "each revision once, and in order"
        assert model.checkpoint.revision == model.applied[-1]


ACTIONS = st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.booleans(), st.integers(0, 99)), max_size=60)


@pytest.mark.slow
@given(ACTIONS)
@nightly_examples(20000, default=500)
def test_each_revision_is_applied_once_and_in_order(actions: list[tuple[int, bool, bool, int]]) -> None:
    run_model(actions)


def test_the_model_catches_a_mirror_that_takes_the_write_of_another_for_its_own() -> None:
    # The source has two more revisions; both load; the first writes both of them; the second begins.
    source, first, second = (0, True, True, 0), (9, True, True, 0), (9, True, True, 1)
    actions = [source, source, second, first, first, first, second, second]
    run_model(actions)
    with pytest.raises(AssertionError, match="once, and in order"):
        run_model(actions, judge=lambda write, before, found: CheckpointVerdict.APPLIED)
