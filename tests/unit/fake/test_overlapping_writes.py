"""fake/txns.py, fake/releases.py: a txn that ends the members of a real etcd is refused."""

import pytest

from etcd_aio import pb
from etcd_aio.fake.refusals import Reason, Refusal
from etcd_aio.fake.releases import RELEASES, Release
from etcd_aio.fake.txns import check_txn

PUT = pb.RequestOp(request_put=pb.PutRequest(key=b"k", ignore_value=True))
ENDLESS = pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=b"a", range_end=b"\x00"))
LATER = pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=b"l", range_end=b"\x00"))


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
@pytest.mark.parametrize("operations", [[PUT, ENDLESS], [ENDLESS, PUT]])
def test_a_delete_without_an_end_covers_later_keys(operations: list[pb.RequestOp], release: Release) -> None:
    with pytest.raises(Refusal) as refused:
        check_txn(pb.TxnRequest(success=operations), release)
    assert refused.value.text == Reason.DUPLICATE_KEY.text
    inner = pb.RequestOp(request_txn=pb.TxnRequest(success=[ENDLESS]))
    with pytest.raises(Refusal):
        check_txn(pb.TxnRequest(failure=[PUT, inner]), release)


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_earlier_keys_and_the_other_branch_are_not_covered(release: Release) -> None:
    check_txn(pb.TxnRequest(success=[PUT, LATER]), release)
    check_txn(pb.TxnRequest(success=[PUT], failure=[ENDLESS]), release)
