"""How much the suite runs: the default tier, with `--nightly` everything, with `--quick` what a minute is enough for.

by default   hypothesis: at most 100 examples, fewer of slow ones, the same in every run
             engines: `native`, and `grpclib` too for tests marked `both_engines`; `--engines` chooses others
             stores: clients of the whole store, and clients with a namespace for tests marked `both_stores`
             contract: both engines on asyncio, `native` on uvloop too
             tests marked `nightly` are left out
--nightly    hypothesis: the number that each test names, new ones in every run
             engines: all
             contract: all engines on both loops
             stores: both, unless marked `whole_store`
             every test
--quick      hypothesis: at most a quarter of the default tier's examples
             tests marked `nightly` or `slow` are left out
"""

from typing import Final

from hypothesis import HealthCheck, settings

DEFAULT_EXAMPLES: Final = 100


def _quick(number: int) -> int:
    return max(1, number // 4)


# Times are no subject of these tests: neither an example nor drawing one has a limit.
_COMMON: Final = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=DEFAULT_EXAMPLES)
settings.register_profile("default tier", _COMMON, derandomize=True)
settings.register_profile("nightly", _COMMON, print_blob=True)
settings.register_profile("quick", _COMMON, derandomize=True, max_examples=_quick(DEFAULT_EXAMPLES))


def choose(tier: str) -> None:
    """Choose the tier; before test modules are imported, since their decorators ask for it."""
    settings.load_profile(tier)


def nightly_examples(number: int, *, default: int = DEFAULT_EXAMPLES) -> settings:
    """A decorator: `number` examples in a nightly run, and at most `default` otherwise; fewer where each is slow."""
    tier = settings.get_current_profile_name()
    if tier == "nightly":
        return settings(max_examples=number)
    number = min(number, default)
    return settings(max_examples=_quick(number) if tier == "quick" else number)
