"""The seed of random histories: a new one for every run, in the id of every test that uses it.

ETCD_AIO_TEST_SEED    repeats a run with its seed
"""

import os
import random
from typing import Final

_VARIABLE: Final = "ETCD_AIO_TEST_SEED"


def choose() -> None:
    """Choose a seed unless the environment names one; processes that are started later, such as workers, inherit it."""
    os.environ.setdefault(_VARIABLE, str(random.randrange(10**6)))


def chosen() -> int:
    """The seed of this run."""
    return int(os.environ[_VARIABLE])
