import pytest

from etcd_aio import methods
from etcd_aio.error_handler.answer import answer
from etcd_aio.errors import CompactedError, NotSupportedByServerError, StatusCode
from etcd_aio.methods import AnyMethod
from tests.support.calls import answered


@pytest.mark.parametrize("method", [row for row in methods.ALL if row.since], ids=lambda row: row.name)
def test_a_missing_rpc_is_named_with_the_release_that_has_it(method: AnyMethod) -> None:
    error = answer(answered(StatusCode.UNIMPLEMENTED, "unknown method X for service Y"), method)
    assert type(error) is NotSupportedByServerError
    assert str(error) == f"{method.name} needs etcd {method.since} or newer: unknown method X for service Y"
    assert (error.feature, error.needs) == (method.name, method.since)


def test_what_every_etcd_has_may_still_be_missing_behind_a_proxy() -> None:
    error = answer(answered(StatusCode.UNIMPLEMENTED, "unknown service etcdserverpb.Lease"), methods.LEASE_GRANT)
    assert str(error) == "Lease/LeaseGrant is not served here: unknown service etcdserverpb.Lease"


def test_any_other_answer_is_what_its_text_says() -> None:
    text = CompactedError.default_message
    error = answer(answered(StatusCode.OUT_OF_RANGE, text), methods.RANGE_STREAM)
    assert (type(error), str(error)) == (CompactedError, text)
