"""Status codes: gRPC's names and numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.errors import StatusCode

# From gRPC's own list of status codes.
NAMES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    *("INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)


@pytest.mark.parametrize(("number", "name"), list(enumerate(NAMES)))
def test_every_number_has_grpcs_name(number: int, name: str) -> None:
    assert StatusCode.from_number(number) is StatusCode[name]


def test_there_are_no_others() -> None:
    assert len(StatusCode) == len(NAMES)


@given(st.integers().filter(lambda number: not 0 <= number <= 16))
def test_a_number_that_grpc_does_not_define_is_unknown(number: int) -> None:
    assert StatusCode.from_number(number) is StatusCode.UNKNOWN
