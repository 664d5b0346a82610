"""What does not run through `etcd_aio.sync`, and why."""

from collections.abc import Mapping
from typing import Final

import pytest

LEFT_OUT: Final[Mapping[str, str]] = {}


def reason_of(item: pytest.Item) -> str | None:
    """Why a test is left out, if it is."""
    test = getattr(item, "originalname", item.name)
    return LEFT_OUT.get(f"{item.path.stem}::{test}") or LEFT_OUT.get(item.path.stem)
