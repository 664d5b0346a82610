"""How much the suite runs: the default tier, or with `--nightly` everything.

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
"""

from typing import Final

from hypothesis import HealthCheck, settings

DEFAULT_EXAMPLES: Final = 100

# Times are no subject of these tests: neither an example nor drawing one has a limit.
_COMMON: Final = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=DEFAULT_EXAMPLES)
settings.register_profile("default tier", _COMMON, derandomize=True)
settings.register_profile("nightly", _COMMON, print_blob=True)


def choose(*, is_nightly: bool) -> None:
    """Choose the tier; before test modules are imported, since their decorators ask for it."""
    settings.load_profile("nightly" if is_nightly else "default tier")


def nightly_examples(number: int, *, default: int = DEFAULT_EXAMPLES) -> settings:
    """A decorator: `number` examples in a nightly run, and at most `default` otherwise; fewer where each is slow."""
    if settings.get_current_profile_name() == "nightly":
        return settings(max_examples=number)
    return settings(max_examples=min(number, default))
