"""config/connection_certificates.py: the files and the first end that the handshakes of a connection have used."""

import ssl
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from typing import Any

import pytest
import trustme

from etcd_aio.config import TLS, CertificateFiles
from etcd_aio.transport import OF_CLIENT, OF_MEMBER, ConnectionCertificates
from tests.support.certificates import server_context, write_ca, write_leaf

pytestmark = pytest.mark.anyio

TODAY = datetime.now(UTC).replace(microsecond=0)


class World:
    """The files of a client, and members that it shakes hands with."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.authority = trustme.CA()
        self.folder = folder
        self.ca = write_ca(self.authority, folder / "ca.pem")
        self.own(30)
        self.options = {"cert": folder / "own.pem", "key": folder / "own.key", "reconnect": True, **options}
        self.files = CertificateFiles(TLS(ca=self.ca, **self.options))
        self.files.check()

    def own(self, days: int) -> None:
        write_leaf(self.authority.issue_cert("own", not_after=TODAY + timedelta(days)), self.folder, "own")

    async def shake_hands(self, certificates: ConnectionCertificates, days: int) -> None:
        """A handshake with a member whose certificate lives so long, in memory."""
        leaf = self.authority.issue_cert("m1", not_after=TODAY + timedelta(days))
        context = await certificates.context()
        there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(back, there, server_hostname="m1")
        server = server_context(leaf).wrap_bio(there, back, server_side=True)
        for side in (client, server, client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
        certificates.on_handshake(client)


def ends(certificates: ConnectionCertificates) -> tuple[float, str]:
    at, whose = certificates.expiry
    return (at if at == inf else round((at - TODAY.timestamp()) / 86400), whose)


async def test_the_earlier_end_counts_and_whose_it_is(tmp_path: Path) -> None:
    it = World(tmp_path)
    for days, expected in ((10, (10, OF_MEMBER)), (50, (30, OF_CLIENT))):
        certificates = it.files.for_connection()
        await it.shake_hands(certificates, days)
        assert ends(certificates) == expected
        assert certificates.is_current
        assert certificates.server_name == ""


async def test_the_first_end_of_several_sockets_counts(tmp_path: Path) -> None:
    it = World(tmp_path)
    certificates = it.files.for_connection()
    for days in (20, 5, 25):
        await it.shake_hands(certificates, days)
    assert ends(certificates) == (5, OF_MEMBER)


async def test_files_that_change_make_it_old_for_good(tmp_path: Path) -> None:
    """A further socket has the new files, but the first has the old ones."""
    it = World(tmp_path)
    certificates = it.files.for_connection()
    await it.shake_hands(certificates, 100)
    await it.files.read()
    assert certificates.is_current, "they were read, and have not changed"
    it.own(60)
    assert certificates.is_current, "they were not read yet"
    await it.files.read()
    assert not certificates.is_current
    await it.shake_hands(certificates, 100)
    assert not certificates.is_current
    assert ends(certificates) == (30, OF_CLIENT)
    newer = it.files.for_connection()
    assert newer.is_current, "nothing was dialled yet"
    await it.shake_hands(newer, 100)
    assert newer.is_current
    assert ends(newer) == (60, OF_CLIENT)


@pytest.mark.parametrize("file", ["ca.pem", "own.pem", "own.key"])
async def test_each_file_counts(tmp_path: Path, file: str) -> None:
    it = World(tmp_path)
    certificates = it.files.for_connection()
    await it.shake_hands(certificates, 100)
    with (tmp_path / file).open("ab") as appended:
        appended.write(b"\n")
    await it.files.read()
    assert not certificates.is_current


async def test_new_files_that_do_not_fit_make_nothing_old(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    it = World(tmp_path)
    certificates = it.files.for_connection()
    await it.shake_hands(certificates, 100)
    key = (tmp_path / "own.key").read_bytes()
    it.own(60)
    (tmp_path / "own.key").write_bytes(key)
    await it.files.read()
    assert certificates.is_current
    assert "cannot be used" in caplog.text


async def test_a_member_that_is_not_verified_has_an_end_too(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="without verification"):
        it = World(tmp_path, insecure_skip_server_verification=True)
    certificates = it.files.for_connection()
    await it.shake_hands(certificates, 10)
    assert ends(certificates) == (10, OF_MEMBER)


async def test_without_files_only_the_members_count() -> None:
    files = CertificateFiles(TLS(reconnect=True))
    await files.read()
    assert (files.has_files, files.version) == (False, 0), "nothing was read"
    certificates = files.for_connection()
    await certificates.context()
    assert certificates.expiry == (inf, OF_CLIENT)
    assert certificates.is_current


async def test_without_the_option_the_certificate_is_not_parsed(tmp_path: Path) -> None:
    it = World(tmp_path, reconnect=False)
    assert (await it.files.load()).not_after == inf
