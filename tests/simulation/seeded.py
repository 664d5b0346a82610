"""All randomness of this process from a seed, while a block runs: jitter from `random`, ids from `secrets`."""

import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Replace the system's entropy, and what `random` draws, by what follows from a seed."""
    before = random.getstate()
    random.seed(f"jitter {seed}")
    ids = random.Random(f"ids {seed}")
    with (
        mock.patch.object(secrets, "randbits", ids.getrandbits),
        mock.patch.object(secrets, "token_bytes", ids.randbytes),
    ):
        try:
            yield
        finally:
            random.setstate(before)
