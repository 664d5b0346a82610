"""A block without garbage collections: one goes through all that other tests have left, and takes long."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Iterator[None]:
    """Collect before the block, and not within it, so that its times are those of what it does."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
