"""base/call_options.py: `UNSET` is one value, also when it is copied, and there are three retry modes."""

import copy
import pickle
from typing import get_args

from etcd_aio.base.call_options import UNSET, RetryMode


def test_unset_is_one_value_that_is_not_none() -> None:
    assert UNSET is not None
    assert pickle.loads(pickle.dumps(UNSET)) is UNSET
    assert copy.deepcopy(UNSET) is UNSET
    assert repr(UNSET) == "UNSET"


def test_the_three_retry_modes() -> None:
    assert get_args(RetryMode) == ("safe", "never", "always")
