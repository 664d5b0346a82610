"""base/durations.py: durations are printed as Go prints them."""

import pytest

from etcd_aio.base.durations import go_duration


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [
        (0, "0s"),
        (17, "17ns"),
        (1500, "1.5µs"),
        (4_900_760, "4.90076ms"),
        (1_000_000_000, "1s"),
        (59_999_000_000, "59.999s"),
        (60_500_000_000, "1m0.5s"),
        (3_600_000_000_000, "1h0m0s"),
        (3_723_500_000_000, "1h2m3.5s"),
        (-1, "-1ns"),
        (-90_000_000_000, "-1m30s"),
        (2**63 - 1, "2562047h47m16.854775807s"),
        (-(2**63), "-2562047h47m16.854775808s"),
    ],
)
def test_durations_are_those_of_go(nanoseconds: int, shown: str) -> None:
    assert go_duration(nanoseconds) == shown
