"""admin/member_health.py, types/member_health.py: what members answer, and what is not etcd."""

import asyncio

import pytest

from etcd_aio.admin import HealthCheck, MemberHealth
from etcd_aio.admin.maintenance import Maintenance
from etcd_aio.admin.member_health import parse_checks, parse_word
from etcd_aio.errors import ConnectError, EtcdTimeoutError
from tests.support.calls import Calls

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

READY = b"[+]serializable_read ok\n[+]data_corruption ok\nok\n"
CORRUPT = b"[+]non_learner ok\n[-]data_corruption failed: alarm activated: CORRUPT\n[+]serializable_read ok\n\n"


class Documents:
    """The documents of a member by path, and what was requested."""

    def __init__(self, **documents: bytes | Exception | None) -> None:
        self.documents = {f"/{name}": document for name, document in documents.items()}
        self.requested: list[str] = []

    async def get(self, endpoint: str, path: str) -> bytes:
        assert endpoint == "m2:2379"
        self.requested.append(path)
        found = self.documents.get(path.partition("?")[0], ConnectError("HTTP status 404"))
        if found is None:
            await asyncio.sleep(3)
            raise ConnectError("HTTP status 404")
        if isinstance(found, Exception):
            raise found
        return found


async def asked(documents: Documents, **options: object) -> MemberHealth:
    calls = await Calls().ready()
    try:
        return await Maintenance(calls.invoker, documents.get).readyz("m2:2379", **options)  # type: ignore[arg-type]
    finally:
        await calls.aclose()


async def test_a_member_that_is_ready() -> None:
    documents = Documents(readyz=READY)
    found = await asked(documents)
    assert found
    assert found == MemberHealth(
        "m2:2379", "/readyz", True, (HealthCheck("data_corruption", True), HealthCheck("serializable_read", True))
    )
    assert (found.failed, found.is_fallback) == ((), False)
    assert documents.requested == ["/readyz?verbose"]


async def test_a_member_that_is_not_tells_which_check_fails_and_why() -> None:
    found = await asked(Documents(readyz=CORRUPT))
    assert not found
    assert found.failed == (HealthCheck("data_corruption", False, "alarm activated: CORRUPT"),)
    assert [one.name for one in found.checks] == ["data_corruption", "non_learner", "serializable_read"]


async def test_names_are_excluded() -> None:
    documents = Documents(readyz=b"ok\n")
    found = await asked(documents, exclude=["non_learner", "a&b= c"])
    assert (found.is_ok, found.checks) == (True, ())
    assert documents.requested == ["/readyz?verbose&exclude=non_learner&exclude=a%26b%3D%20c"]
    with pytest.raises(TypeError, match="several names"):
        await asked(documents, exclude="non_learner")
    with pytest.raises(TypeError, match="got int"):
        await asked(documents, exclude=[1])


@pytest.mark.parametrize("missing", [ConnectError("HTTP status 404"), b"<html>503</html>"])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b'{"health":"true"}', HealthCheck("health", True)),
        (b'{"health":"true","reason":""}', HealthCheck("health", True)),
        (b'{"health":"false"}', HealthCheck("health", False)),
        (b'{"health":"false","reason":"ALARM NOSPACE"}\n', HealthCheck("health", False, "ALARM NOSPACE")),
    ],
)
async def test_an_older_member_says_one_word(missing: Exception | bytes, answer: bytes, expected: HealthCheck) -> None:
    documents = Documents(readyz=missing, livez=missing, health=answer)
    found = await asked(documents, exclude=["non_learner"])
    assert found == MemberHealth("m2:2379", "/health", expected.is_ok, (expected,))
    assert found.is_fallback
    calls = await Calls().ready()
    live = await Maintenance(calls.invoker, documents.get).livez("m2:2379")
    assert (live.path, live.is_ok) == ("/health", expected.is_ok)
    assert documents.requested[1] == "/health"
    assert documents.requested[2:] == ["/livez?verbose", "/health?serializable=true"], "which needs no leader"
    await calls.aclose()


async def test_an_endpoint_without_either_is_an_error_that_names_the_first() -> None:
    for documents in (Documents(), Documents(readyz=b"", health=b"[]")):
        with pytest.raises(ConnectError) as caught:
            await asked(documents)
        assert "readyz" in caught.value.message or "404" in caught.value.message
    refused = Documents(readyz=ConnectionRefusedError(111, "Connection refused"))
    with pytest.raises(ConnectError, match="no /readyz from m2:2379"):
        await asked(refused)


async def test_both_requests_share_the_timeout() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(EtcdTimeoutError, match="did not send /health in time"):
        await asked(Documents(readyz=None, health=None), timeout=5)
    assert loop.time() - began == pytest.approx(5)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        "404 page not found\n",
        "[+]a ok\n[?]b ok\nok\n",
        "[+]a ok\n\n[+]b ok\nok\n",
        "[-]a failed: x\nok\n",
        "[+]a ok\n\n",
        "[+]a ok",
        "[+] ok\nok\n",
    ],
)
def test_what_is_no_answer_of_etcd(text: str) -> None:
    with pytest.raises(ConnectError, match="not that of etcd"):
        parse_checks("m", "/readyz", text)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"health":true}', '{"health":"maybe"}', "[" * 100_000])
def test_what_is_no_word_of_etcd(text: str) -> None:
    with pytest.raises(ConnectError, match="not that of etcd"):
        parse_word("m", text)
