"""The health of a member, as it reports it over HTTP."""

from etcd_aio.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One check that a member made of itself.

    Attributes:
        name: its name, such as "linearizable_read"; "health" if the member only says whether it is healthy.
        is_ok: whether it passed.
        reason: why it failed; empty if it passed, or the member does not say why.
    """

    name: str
    is_ok: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MemberHealth:
    """Whether a member is live, or ready. It is true if it is.

    Attributes:
        endpoint: the endpoint.
        path: what the member was asked: "/livez" or "/readyz"; "/health" if its release has neither.
        is_ok: whether all checks passed.
        checks: the checks, sorted by name.
    """

    endpoint: str
    path: str
    is_ok: bool
    checks: tuple[HealthCheck, ...] = ()

    def __bool__(self) -> bool:
        return self.is_ok

    @property
    def is_fallback(self) -> bool:
        """Whether the member has neither `/livez` nor `/readyz`, so that its `/health` was read: one word for all."""
        return self.path == "/health"

    @property
    def failed(self) -> tuple[HealthCheck, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if not check.is_ok)
