"""Recorder: what clients did and were told, in the folder of a report that etcd's validators read.

A client id of the report is a lane: it has one call at a time. A write without an answer may be applied much later, so
its lane is never used again; that is the rule of etcd's own reports. What these have no word for is in `claims.json`.
"""

import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from etcd_aio import EtcdError
from etcd_aio.errors import CompactedError, FutureRevisionError, LeaseExistsError, LeaseNotFoundError
from tests.evidence import model
from tests.evidence.model import Json

T = TypeVar("T")

REFUSED: Final = (CompactedError, FutureRevisionError, LeaseExistsError, LeaseNotFoundError)
"""Errors that a member gives when it applies the request: that stands in the log, and has changed nothing."""

_LOST_LANE: Final = "cancelled"


@dataclass(slots=True)
class Lane:
    """A client id of the report.

    Attributes:
        id: the id.
        last: when its last call returned, in nanoseconds since the report began.
    """

    id: int
    last: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """The name of a write, by which it is found in a log.

    Attributes:
        name: such as "put:v17".
        once: copies of it may stand in the log, of which one is applied.
        free: copies of it are harmless, and allowed.
    """

    name: str
    once: bool = False
    free: bool = False


@dataclass(slots=True)
class Call:
    """A call that is under way."""

    request: Json
    lane: Lane
    began: int


@dataclass(slots=True)
class Recorder:
    """Records one report.

    Args:
        folder: of the report.
        clock: in nanoseconds.

    Attributes:
        counts: of calls by their ends.
        errors: of calls by the classes of their errors.
    """

    folder: Path
    clock: Callable[[], int] = time.monotonic_ns
    counts: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    _free: list[Lane] = field(default_factory=list)
    _operations: list[Json] = field(default_factory=list)
    _watches: list[Json] = field(default_factory=list)
    _claims: list[Json] = field(default_factory=list)
    _snapshots: list[Json] = field(default_factory=list)
    _lanes: int = 0
    _base: int = field(init=False)

    def __post_init__(self) -> None:
        self._base = self.clock()

    @property
    def operations(self) -> int:
        """How many were recorded."""
        return len(self._operations)

    def now(self) -> int:
        """Nanoseconds since the report began."""
        return self.clock() - self._base

    # Operations.

    def begin(self, request: Json) -> Call:
        """A call begins."""
        if self._free:
            lane = self._free.pop()
        else:
            self._lanes += 1
            lane = Lane(self._lanes)
        return Call(request, lane, max(self.now(), lane.last + 1))

    def end(self, call: Call, output: Json, *, is_known: bool = True) -> None:
        """A call has ended. Unless it is known what became of it, its lane has ended too."""
        returned = max(self.now(), call.began + 1)
        call.lane.last = returned
        line = {"Call": call.began, "Input": call.request, "Output": output, "Return": returned}
        self._operations.append({"ClientID": call.lane.id, **line})
        if is_known:
            self._free.append(call.lane)

    def forget(self, call: Call) -> None:
        """A call was never applied, as the log will show: it has no place in the history."""
        self._free.append(call.lane)

    async def call(
        self,
        request: Json,
        awaitable: Awaitable[T],
        output: Callable[[T], Json],
        mark: Mark | None = None,
    ) -> T | EtcdError:
        """Make a call and record it. Returns its result, or its error."""
        call, is_read = self.begin(request), model.is_read(request)
        try:
            result = await awaitable
        except EtcdError as error:
            self.failed(call, error, mark)
            return error
        except BaseException:
            self.end(call, model.failed(_LOST_LANE), is_known=is_read)
            self.claim(mark, "unknown")
            raise
        shown = output(result)
        revision = shown.get("Revision", 0)
        header = getattr(result, "header", None)
        if header is not None and header.member_id:
            shown["member-id"] = f"{header.member_id:x}"
        self.end(call, shown)
        self.claim(mark, "read" if is_read else "applied", revision)
        return result

    def failed(self, call: Call, error: EtcdError, mark: Mark | None = None) -> None:
        """A call has ended with an error."""
        self.errors[type(error).__name__] += 1
        is_read, answer = model.is_read(call.request), foreseen(call.request, error)
        if answer is None:
            self.end(call, model.failed(type(error).__name__), is_known=is_read)
        else:
            self.end(call, answer)
        self.claim(mark, "read failed" if is_read else told(error))

    def claim(self, mark: Mark | None, said: str, revision: int = 0) -> None:
        """The client has said what became of a write, and of which revision it is, if it was applied."""
        self.counts[said] += 1
        if mark is not None:
            claim = {"Mark": mark.name, "Told": said, "Once": mark.once, "Free": mark.free, "Revision": revision}
            self._claims.append(claim)

    # What the client has shown of known revisions.

    def snapshot(self, kind: str, keys: Json, found: Json, revision: int, floor: int = 0) -> None:
        """A state was shown, of a revision that was named with it."""
        self.counts[kind] += 1
        self._snapshots.append({"Kind": kind, "Request": keys, "Response": found, "Revision": revision, "Floor": floor})

    def watch(self, request: Json, responses: list[Json]) -> None:
        """A watch has ended."""
        if responses:
            self._watches.append({"Request": request, "Responses": responses})

    # The files.

    def write(self, facts: dict[str, Any]) -> None:
        """Write the report."""
        client = self.folder / "client-1"
        client.mkdir(parents=True, exist_ok=True)
        _write_lines(client / "operations.json", self._operations)
        _write_lines(client / "watch.json", self._watches)
        claims = {"Writes": self._claims, "Snapshots": self._snapshots}
        (self.folder / "claims.json").write_text(json.dumps(claims))
        (self.folder / "facts.json").write_text(json.dumps(facts, indent=1))


def told(error: EtcdError) -> str:
    """What an error says of a write."""
    if error.maybe_applied:
        return "unknown"
    return "refused" if isinstance(error, REFUSED) else "not applied"


def foreseen(request: Json, error: EtcdError) -> Json | None:
    """The answer of the model that an error is, if it is one."""
    if request["Type"] != "compact" or error.maybe_applied:
        return None
    if isinstance(error, CompactedError):
        return model.client_error(model.COMPACTED)
    return model.client_error(model.FUTURE_REVISION) if isinstance(error, FutureRevisionError) else None


def _write_lines(path: Path, lines: list[Json]) -> None:
    encode = json.JSONEncoder(separators=(",", ":")).encode
    with path.open("w") as file:
        file.writelines(encode(line) + "\n" for line in lines)
