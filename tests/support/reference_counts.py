"""The objects whose references Python counts, for tests of C code."""

import sys


def mortal(*objects: object) -> tuple[object, ...]:
    """Those of these objects that Python itself counts references to.

    From Python 3.12 on it counts none to its immortal objects. C code of the stable ABI of 3.11, in whatever package,
    still does, and may so take them out of that state; then their counts grow without a leak.
    """
    is_counted = sys.version_info < (3, 12)
    return tuple(one for one in objects if is_counted or not (one is None or one is True or one is False or one == b""))
