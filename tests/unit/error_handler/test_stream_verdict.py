import pytest

from etcd_aio.error_handler.stream_verdict import (
    STREAM_VERDICTS,
    StreamFacts,
    StreamSituation,
    StreamVerdict,
    judge_stream,
)
from etcd_aio.errors import Delivery, Remedy

AT_ONCE, BACKOFF, END = StreamVerdict.AT_ONCE, StreamVerdict.BACKOFF, StreamVerdict.END
ANSWERED = Delivery.ANSWERED


def test_every_situation_stands_in_the_table() -> None:
    assert set(STREAM_VERDICTS) == set(StreamSituation)


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        (StreamFacts(None), AT_ONCE),
        (StreamFacts(Delivery.UNSENT), AT_ONCE),
        (StreamFacts(Delivery.UNPROCESSED), AT_ONCE),
        (StreamFacts(Delivery.UNKNOWN), AT_ONCE),
        (StreamFacts(Delivery.UNKNOWN, is_final=True), END),
        (StreamFacts(Delivery.UNKNOWN, is_final=True, says_otherwise=True), AT_ONCE),
        (StreamFacts(ANSWERED), END),
        (StreamFacts(ANSWERED, is_unforeseen=True), BACKOFF),
        (StreamFacts(ANSWERED, others_may_serve=True), BACKOFF),
        (StreamFacts(ANSWERED, Remedy.RETRY_ELSEWHERE), BACKOFF),
        (StreamFacts(ANSWERED, Remedy.RETRY_IF_REPEATABLE), BACKOFF),
        (StreamFacts(ANSWERED, Remedy.REFRESH_TOKEN), END),
        (StreamFacts(ANSWERED, Remedy.REFRESH_TOKEN, has_token=True), StreamVerdict.REFRESH_TOKEN),
        (StreamFacts(Delivery.UNKNOWN, Remedy.REFRESH_TOKEN, has_token=True), AT_ONCE),
    ],
)
def test_the_rows(facts: StreamFacts, verdict: StreamVerdict) -> None:
    assert judge_stream(facts) is verdict
