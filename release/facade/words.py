"""Words: how docstrings about asyncio are said of blocking code."""

import re
from typing import Final

from release.facade.docstrings import rewritten

WRONG: Final = re.compile(
    r"\bawaits?\b|\basync\b|async (?:with|for|def)|\baclose\b|\banyio\b|asyncio\.|\btasks?\b|\bcoroutines?\b|\bloop\b"
    r"|\b[Cc]ancel(?:s|l?ed|l?ing|lation)?\b"
)
"""Words that say in most places that code is asynchronous."""

ALLOWED: Final = (
    "a loop over `client.scan",  # a statement
    "it is cancelled on the server",
    "its watch is cancelled on the server",
    "End the watch: cancel it on the server",
    "enable or cancel a downgrade",
    '`"enable"` or `"cancel"`',
    'empty for `"cancel"`',
    "no downgrade to cancel",
    "a call that waits is cancelled",
    "run in the client's loop",
    "in the loop's thread",
    "allow_in_loop",
)
"""Sentences in which one of these words is right."""

_CODE: Final = (
    (r"\basync (with|for)\b", r"\1"),
    (r"\basync def\b", "def"),
    (r"\((await ([^()]*\((?:[^()]|\([^()]*\))*\)))\)", r"\2"),
    (r"\bawait (?=[\w(])", ""),
    (r"\baclose\b", "close"),
    (r"asyncio\.create_subprocess_exec\(", "subprocess.run(["),
    (r'"get", "a"\)', '"get", "a"])'),
    (r";? +no await$", ""),
    (r"; no await$", ""),
)
_PROSE: Final = (
    (r"`async (with|for)\b", r"`\1"),
    (r"\bawait (?=[\w]+[.(])", ""),
    (r"\baclose\b", "close"),
    (r"^Cancellation: ", "Ctrl-C: "),
    (r"\bCancellation (leaves|changes|loses|waits)\b", r"Ctrl-C \1"),
    (r"\bCancelling the wait changes\b", "Ctrl-C changes"),
    (r"\bCancelling a step\b", "Ctrl-C in a step"),
    (r"\bA cancelled (change|write) may\b", r"A \1 that Ctrl-C interrupts may"),
    (r"\bone task\b", "one thread"),
    (r"\btasks\b", "threads"),
    (r"\ba task\b", "a thread"),
)
"""What is said the same way everywhere."""

_SIGNAL_ONLY: Final = (
    "on_lost: a function that is called with the error if {0} is lost, in a thread of its own: a thread cannot be "
    "cancelled. Leaving raises `{1}` in any case, and `check()` raises it within the block. Default: None."
)
SENTENCES: Final[dict[str, str]] = {
    "An application needs one for each event loop, for as long as the loop runs.": (
        "An application needs one, for as long as it runs; any number of threads may use it. Ctrl-C ends a call that "
        "waits: the call is cancelled, and KeyboardInterrupt raised when it has ended. In a process that was forked, the "
        "client connects anew; what is held, such as locks and watches, is the parent's."
    ),
    "or an async function that returns one,": "or a function that returns one, in a thread of its own,",
    "Time in which the event loop was blocked does not count, nor the wait": "It does not count the wait",
    "the client is closed, or belongs to another loop or process.": "the client is closed.",
    (
        'A lost lease cancels the task that entered (`on_lost="cancel"`), and leaving raises `LeaseLostError`. With '
        '`on_lost="signal"` the block goes on: it looks at `is_lost` or awaits `lost()`, and leaving raises '
        "`LeaseLostError` unless the block ends by an exception of its own. Use `\"signal\"` where a framework enters "
        "and leaves in different tasks, since the task that entered is not the one at work."
    ): (
        "When the lease is lost, the block goes on: a thread cannot be cancelled. It calls `check()` or looks at "
        "`is_lost` from time to time, or has `on_lost` called; leaving raises `LeaseLostError` unless the block ends by "
        "an exception of its own."
    ),
    (
        "The tasks that hold them are cancelled, except for the task that closes: it goes on, and leaving the block "
        "raises `LeaseLostError` from a `ClientClosedError`."
    ): "Leaving the block then raises `LeaseLostError` from a `ClientClosedError`.",
    "passed while the event loop was blocked, or while the machine was suspended": (
        "passed while the process did not run, or while the machine was suspended"
    ),
    "so it is right at once when the event loop, the process or the machine was stopped": (
        "so it is right at once when the process or the machine was stopped"
    ),
    "the names of the host, the process and the task.": "the names of the host and the process.",
    (
        "at which the block is cancelled, if no renewal was acknowledged. It pays for the time that the block needs to "
        "end, and for clocks of different rates."
    ): (
        "at which it counts as lost, if no renewal was acknowledged. It pays for the time that the block needs to notice "
        "and end, and for clocks of different rates."
    ),
    "at which the block is cancelled": "at which it counts as lost",
    (
        'on_lost: what happens if the lock is lost: `"cancel"` cancels the task in the block, `"signal"` only sets '
        "`lock.is_lost`. Leaving raises `LockLostError` in both cases."
    ): _SIGNAL_ONLY.format("the lock", "LockLostError"),
    (
        'on_lost: what happens if a leadership is lost: `"cancel"` cancels the task in the block, `"signal"` only sets '
        "`leadership.is_lost`. Leaving raises `LeadershipLostError` in both cases."
    ): _SIGNAL_ONLY.format("a leadership", "LeadershipLostError"),
    (
        'on_lost: what happens if the lease is lost: `"cancel"` cancels the task in the block, `"signal"` only sets '
        "`lease.is_lost`. Leaving raises `LeaseLostError` in both cases."
    ): _SIGNAL_ONLY.format("the lease", "LeaseLostError"),
    'on_lost: `"cancel"` or `"signal"`, as of locks: whether a loss cancels the block of a job.': (
        "on_lost: a function that is called with the error if a job is lost, as of locks."
    ),
    'on_lost: `"cancel"` or `"signal"`, as of locks.': "on_lost: a function that is called with the error of a loss, as of locks.",
    'on_lost: `"cancel"` or `"signal"`.': "on_lost: a function that is called with the error of a loss; see `lock`.",
    "reentrant: let the task that holds this object enter it again.": "",
    "Run an async function as a transaction": "Run a function as a transaction",
    "Leaving revokes it, within 2 seconds and even if the block was cancelled;": (
        "Leaving revokes it, within 2 seconds and however the block ends;"
    ),
    "If entering fails or is cancelled,": "If entering fails or Ctrl-C interrupts it,",
    "Scan: an async iterator of": "Scan: an iterator of",
    "If a mutation is cancelled, it": "If Ctrl-C interrupts a mutation, it",
    "However it is left (by a break, an exception, a cancellation), it": "However it is left (by a break or an exception), it",
    "It never waits; it is a coroutine as every `aclose` is.": "",
    "This never waits: it is a coroutine so that it may wait in a later version, and the answer comes by iterating.": (
        "It does not wait for the answer, which comes by iterating."
    ),
    "Neither the timeout nor a cancellation stops": "Neither the timeout nor Ctrl-C stops",
    "If the call fails or is cancelled,": "If the call fails or Ctrl-C interrupts it,",
    "If the call is cancelled, the leadership": "If Ctrl-C interrupts the call, the leadership",
    "After an error or a cancellation nothing": "After an error or Ctrl-C nothing",
    "timeout: seconds for each chunk; `asyncio.timeout()` bounds the whole call.": "timeout: seconds for each chunk.",
    "after an error, or a cancelled step, there": "after an error, or Ctrl-C in a step, there",
    "it waits until it leads, is cancelled, or loses its lease.": "it waits until it leads, or loses its lease.",
    "If the leadership is lost, `work` is cancelled, and the process": (
        "If the leadership is lost, `work` goes on until it returns: a thread cannot be cancelled, so it calls "
        "`leadership.check()` from time to time. The process"
    ),
    "is a candidate again when `work` has ended: one process never runs it twice at a time.": (
        "is a candidate again when `work` has ended by the error of the loss: one process never runs it twice at a time."
    ),
    "It runs in a task of its own, to its end also if it resigns.": "It runs in the thread that calls this.",
    (
        "TypeError: `work` is no async function; of a function that returns no coroutine this is known only when the "
        "candidate leads, and it has resigned then."
    ): "TypeError: `work` is no function.",
    "An error is logged too, since a caller that gathers tasks may never look at it.": "An error is logged too.",
    "`work` is cancelled, the candidate waits for its end, and resigns.": "the candidate resigns.",
    "Cancelling the wait for the next one loses nothing.": "Ctrl-C loses nothing.",
    (
        "If the leadership is lost in between, the task that entered is cancelled before etcd lets another candidate "
        "lead, and leaving raises `LeadershipLostError`."
    ): (
        "A thread cannot be cancelled: if the leadership is lost in between, `is_held` is False and `check()` raises "
        "before etcd lets another candidate lead, `on_lost` is called, and leaving raises `LeadershipLostError`."
    ),
    (
        "If it is lost in between, the task that entered is cancelled before etcd lets another contender in, and "
        "leaving raises `LockLostError`."
    ): (
        "A thread cannot be cancelled: if the lock is lost in between, `is_held` is False and `check()` raises before "
        "etcd lets another contender in, `on_lost` is called, and leaving raises `LockLostError`."
    ),
    (
        'Where a framework enters and leaves in different tasks, use `on_lost="signal"`: a loss cancels the task that '
        "has acquired."
    ): "",
    "Or this task holds the lock, and it is lost.": "",
    "this object is in use, by another task, or by this one and it is not `reentrant`.": "this object is in use.",
    "A lost session loses all its locks; it cancels the block as `Lease` does.": "A lost session loses all its locks.",
    "Any number of tasks may use one object. The clients of `etcd_aio.contrib.discovery` share one.": (
        "Any number of threads may use one object."
    ),
    (
        "The content is always what a range at one revision would return, and between two awaits of the caller it does "
        "not change."
    ): "Each read is of the store at one revision; between two reads the content may change.",
    "What is read before the next await of the caller is linearizable:": "What is read from then on is linearizable:",
    "What the caller reads from then on, before its next await, is linearizable, of all keys together.": (
        "What the caller reads from then on is linearizable."
    ),
    "WrongLoopError: called in another loop than the cache's.": "",
    (
        "The first step is about the content that is read in the same turn of the loop in which this is called: no "
        "change is missed. The content may be read in the same turn as each step; it is at `revision` then."
    ): "The first step is about the content after this call: no change is missed. The content may be newer than a step.",
    "It moves in the same turn of the loop as the content, and never goes back": (
        "It moves with the content, and never goes back"
    ),
    "Everything ends even if the wait is cancelled.": "Everything ends even if Ctrl-C ends the wait.",
    "However slow that task is,": "However slow that thread is,",
    "A subclass has `_make`, and what its users read.": "",
    "Call a function right after each change, in the event loop, until the subscription is ended.": (
        "Call a function after each change, in a thread of its own, until the subscription is ended."
    ),
    "If the lease is lost within the block, its task is cancelled, and leaving raises `LockLostError`.": (
        "If the lease is lost within the block, `check()` raises `LockLostError`, and so does leaving."
    ),
    "The block is not cancelled by a loss; `is_registered` tells.": "A loss does not end the block; `is_registered` tells.",
    "The block is not cancelled by a loss: the endpoint goes on serving.": (
        "A loss does not end the block: the endpoint goes on serving."
    ),
    "If the worker's lease is lost, the block is cancelled, and leaving it raises `JobLostError`:": (
        "If the worker's lease is lost, `check()` raises `JobLostError`, and so does leaving the block:"
    ),
    "The instant of the loop's clock at which": "The instant of `time.monotonic()` at which",
    "It runs until it is cancelled, or fails.": "It runs until Ctrl-C, or until it fails.",
    "With `claim=True` the work is cancelled if the lock is lost, before another process begins it again, and this one": (
        "With `claim=True` another process begins the work again if the lock is lost: let it write what must not happen "
        "twice by a txn with the condition of the `Tick`. This one"
    ),
    "the work is cancelled. If it falls between": "the work ends. If it falls between",
    "those whose blocks are still running are lost, and their tasks are cancelled.": (
        "those whose blocks are still running are lost."
    ),
    "Copy, until it is cancelled or ends by an error.": "Copy, until Ctrl-C or an error, such as that of a client that was closed.",
    "the mirror was cancelled meanwhile.": "the mirror was ended meanwhile.",
    "Requests are answered in a later turn of the loop, and those of one turn in an order that the seed decides:": (
        "Requests that are there together are answered in an order that the seed decides:"
    ),
    (
        "A fake belongs to one event loop at a time, with all of its clients: the next loop may use it when that one "
        "runs no more. What is not `async` may be called from any thread, and before there is a loop; so a synchronous "
        "test can look inside, set up and break what an application uses in another thread."
    ): "Its clients are those that it makes. Any thread may look inside, set up and break what the clients use.",
    (
        "Only the loop of the fake answers: a program that waits for an answer must not block it."
    ): "",
    "The clock of the loop, and so that of clients, stays.": "The clock of the clients stays.",
    "The reads from memory, without an await.": "The reads from memory.",
    "Other tasks of the session wait for it,": "Other threads of the session wait for it,",
    "A task that acquires what it has on the session already would wait for itself: `ClientUsageError`.": (
        "A thread that acquires what it has on the session already waits for itself."
    ),
    "StopAsyncIteration": "StopIteration",
}
"""Sentences that are about asyncio alone, and what is said instead. An empty text leaves them out."""

used: set[str] = set()
"""The sentences that were found."""


def blocking(text: str, indent: int) -> str:
    """A docstring for blocking code."""
    return rewritten(text, _prose, _code, indent)


def _prose(text: str) -> str:
    before = text
    for old, new in SENTENCES.items():
        if old in text:
            used.add(old)
            text = text.replace(old, new)
    for pattern, replacement in _PROSE:
        text = re.sub(pattern, replacement, text)
    return text if text == before else re.sub(r"  +", " ", text).strip()


def _code(text: str) -> str:
    for pattern, replacement in _CODE:
        text = re.sub(pattern, replacement, text)
    return text


def wrong_words(text: str) -> list[str]:
    """The words of a docstring, in one line, that must not be in one for blocking code."""
    for sentence in ALLOWED:
        text = text.replace(sentence, "")
    text = text.replace("a thread cannot be cancelled", "").replace("A thread cannot be cancelled", "")
    return WRONG.findall(text)
