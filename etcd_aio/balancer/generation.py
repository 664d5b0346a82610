"""Generations: the READY sub-connections, with the pickers that choose among them until something changes."""

from collections.abc import Callable, Iterable

from etcd_aio.balancer.health_verdicts import ServiceHealth
from etcd_aio.balancer.picker import Choice, Picker, Policy, PolicyName
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.types import ConnectivityState, Health


class Generation:
    """The current generation.

    Args:
        policy: how attempts are spread.
        random: returns a number in [0, 1).

    Attributes:
        needs: what the policy needs from the balancer.
        ready: the READY sub-connections.
        quorum: the picker for what needs the cluster; None if no sub-connection is READY.
        local: the same for serializable reads, which have turns of their own: alternating calls of both kinds would
            each stick to one member.
    """

    def __init__(self, policy: PolicyName | Choice, random: Callable[[], float]) -> None:
        self._quorum_policy: Policy[SubConnection] = Policy(policy, random)
        self._local_policy: Policy[SubConnection] = Policy(policy, random)
        self.needs = self._quorum_policy.needs
        self.ready: tuple[SubConnection, ...] = ()
        self.quorum: Picker[SubConnection] | None = None
        self.local: Picker[SubConnection] | None = None
        self._candidates: tuple[tuple[SubConnection, ...], ...] = ()  # of the pickers

    def renew(self, current: Iterable[SubConnection]) -> bool:
        """Make new pickers if their candidates have changed; returns whether `ready` has.

        Args:
            current: all sub-connections in use.
        """
        ready = tuple(sub for sub in current if sub.state is ConnectivityState.READY)
        quorum = _healthy(ready, lambda sub: sub.quorum_health)
        local = _healthy(ready, lambda sub: sub.local_health)
        candidates = (ready, quorum, local, tuple(sub for sub in ready if sub.is_leader))
        if candidates == self._candidates:
            return False
        has_changed = ready != self.ready
        self.ready, self._candidates = ready, candidates
        self.quorum = self._quorum_policy.picker(quorum, ready) if ready else None
        self.local = self._local_policy.picker(local, ready) if ready else None
        return has_changed


def _healthy(
    ready: tuple[SubConnection, ...], service: Callable[[SubConnection], ServiceHealth]
) -> tuple[SubConnection, ...]:
    """The healthy ones, or all of them if none is healthy: health is an estimate, and some member has to serve."""
    return tuple(sub for sub in ready if service(sub).health is Health.HEALTHY) or ready
