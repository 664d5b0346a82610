"""config/text.py: durations as Go writes them and in seconds, and texts that are no duration."""

import pytest

from etcd_aio.config.text import read_seconds
from etcd_aio.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3s", 3.0),
        ("500ms", 0.5),
        ("2m", 120.0),
        ("1m30s", 90.0),
        ("1h0m0.5s", 3600.5),
        ("1.5h", 5400.0),
        ("250us", 0.00025),
        ("250\u00b5s", 0.00025),
        ("250\u03bcs", 0.00025),
        ("5ns", 5e-9),
        (".5s", 0.5),
        ("5.s", 5.0),
        ("3", 3.0),
        ("0", 0.0),
        ("2.5", 2.5),
    ],
)
def test_durations_as_go_writes_them_and_plain_seconds(text: str, seconds: float) -> None:
    assert read_seconds("timeout", text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    ["", "s", "-3s", "+3s", "3 s", "3S", "3d", "1e3", "nan", "inf", ".", ".s", "3s4", "1,5s", "\u0663s", "9" * 16],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ConfigError, match="timeout must be a duration"):
        read_seconds("timeout", text)
