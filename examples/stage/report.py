"""Texts about the load: one line while an act runs, a paragraph when it has ended, and the summary at the end."""

from collections.abc import Sequence

from stage.load import Account, Findings

# Older patches of etcd can lose acknowledged writes; see its changelogs.
FIRST_SOUND_PATCH = {(3, 4): 42, (3, 5): 28, (3, 6): 9}


def numbers(account: Account) -> str:
    """The account of the current act, in one line."""
    return (
        f"reads {account.reads:,}, failed {len(account.read_errors)}, longest {_duration(account.longest_read)}   "
        f"writes {account.writes:,}, maybe_applied {_unknown(account)}, longest {_duration(account.longest_write)}"
    )


def report(account: Account, applied: int) -> str:
    """The account of an act that has ended; `applied` of the unknown puts were found in the store."""
    failed = f"{len(account.read_errors)} FAILED ({account.read_errors[0]})" if account.read_errors else "none failed"
    reads = f"{account.reads:,} reads, {failed}, longest {_duration(account.longest_read)}."
    writes = f"{account.writes:,} writes, longest {_duration(account.longest_write)}."
    unknown = len(account.unknown)
    if unknown:
        reasons = ", ".join(sorted(set(account.unknown.values())))
        writes += (
            f" {unknown} ended as maybe_applied ({reasons}); read back: {applied} applied, {unknown - applied} not."
        )
    if account.unknown_steps:
        writes += f" So did {account.unknown_steps} txn."
    if account.refused:
        writes += f" {len(account.refused)} failed and were not applied ({account.refused[0]})."
    moved = f"{account.moved} attempts failed and were retried on another member." if account.moved else ""
    return " ".join(filter(None, (reads, writes, moved)))


def verdict(accounts: Sequence[Account], findings: Findings, version: str) -> tuple[bool, str]:
    """Whether every promise was kept, and the summary."""
    failed = sum(len(account.read_errors) for account in accounts)
    stale = sum(account.stale for account in accounts)
    is_good = findings.are_good and not failed and not stale
    missing, twice = findings.missing, findings.applied_twice
    lines = [
        f"{sum(account.reads for account in accounts):,} reads: {failed} failed, {stale} stale.",
        f"{findings.acknowledged:,} acknowledged puts: {missing} missing, {twice} applied twice.",
        f"{findings.unknown} puts ended as maybe_applied, because their reply was lost: "
        f"{findings.unknown_applied} applied, {findings.unknown - findings.unknown_applied} not.",
        f"The counter, incremented by transactions to {findings.counter}, {_counter_check(findings)}.",
    ]
    if findings.refused:
        lines.append(f"{findings.refused} puts ended as not applied: {findings.refused_but_there} applied.")
    if not is_good and not _is_sound(version):
        lines.append(
            f"etcd {version} itself has known defects when members crash; `nox -s servers` builds a newer one."
        )
    lines.append("Every promise was kept." if is_good else "A PROMISE WAS BROKEN.")
    return is_good, "\n".join(lines)


def _counter_check(findings: Findings) -> str:
    return "lost no step and repeated none" if findings.counter_is_right else "LOST OR REPEATED A STEP"


def _unknown(account: Account) -> int:
    return len(account.unknown) + account.unknown_steps


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _is_sound(version: str) -> bool:
    major, minor, patch = (int(part.split("-")[0]) for part in version.split(".")[:3])
    return bool(patch >= FIRST_SOUND_PATCH.get((major, minor), 0))
