"""config/certificates.py: contexts of files verify members, wrong files are named, and rotations are followed."""

import asyncio
import logging
import os
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from etcd_aio.config import TLS, CertificateFiles, certificates
from etcd_aio.config.certificates import Loaded
from etcd_aio.errors import ConfigError
from tests.support.canary import CANARY, secret
from tests.support.certificates import encrypted, write_ca, write_leaf

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca(authority: trustme.CA, tmp_path: Path) -> Path:
    return write_ca(authority, tmp_path / "ca.pem")


@pytest.fixture
def own(authority: trustme.CA, tmp_path: Path) -> dict[str, Any]:
    return write_leaf(authority.issue_cert("client"), tmp_path, "client")


def built(**options: Any) -> ssl.SSLContext:
    files = CertificateFiles(TLS(**options))
    files.check()
    assert files._loaded is not None
    return files._loaded.context


def trusted(context: ssl.SSLContext) -> int:
    return len(context.get_ca_certs())


# --- what a context is ---


def test_a_context_verifies_names_and_members_and_offers_nothing_old(ca: Path) -> None:
    context = built(ca=ca)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert not context.hostname_checks_common_name
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert trusted(context) == 1, "the given authority and no other"


def test_the_authority_may_be_a_file_a_folder_text_or_bytes(authority: trustme.CA, ca: Path, tmp_path: Path) -> None:
    pem = authority.cert_pem.bytes()
    # Bundles have comments, and those may be in any language.
    for given in (ca, str(ca), pem, pem.decode(), "# Schlüssel\n" + pem.decode(), "# Schlüssel\n".encode() + pem):
        assert trusted(built(ca=given)) == 1
    folder = tmp_path / "authorities"
    folder.mkdir()
    write_ca(trustme.CA(), folder / "a.pem")
    write_ca(trustme.CA(), folder / "b.crt")
    (folder / "README").write_text("no certificate")
    (folder / "c").mkdir()
    assert trusted(built(ca=folder)) == 2


@pytest.mark.parametrize("password", [secret(), secret().encode(), secret])
def test_an_encrypted_key_is_opened(authority: trustme.CA, tmp_path: Path, password: Any) -> None:
    built(**write_leaf(authority.issue_cert("client"), tmp_path, "e", password=secret()), key_password=password)


def test_a_password_that_is_not_needed_does_no_harm(own: dict[str, Any]) -> None:
    built(**own, key_password=secret())


def test_verification_is_skipped_only_if_asked_for(ca: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.warns(UserWarning, match="without verification"):
        context = built(ca=ca, insecure_skip_server_verification=True)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)
    assert "not verified" in caplog.text


# --- what is wrong, and where ---


def test_a_file_that_is_missing_or_unreadable_is_named(own: dict[str, Any], tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    for options in ({"ca": missing}, {**own, "cert": missing}, {**own, "key": missing}):
        with pytest.raises(ConfigError, match=r"missing\.pem: No such file"):
            built(**options)
    with pytest.raises(ConfigError, match="directory"):
        built(**{**own, "key": tmp_path})


def test_a_file_that_holds_something_else_is_named(own: dict[str, Any], tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_text(CANARY)
    for name, options in (("ca", {"ca": other}), ("cert", {**own, "cert": other}), ("key", {**own, "key": other})):
        with pytest.raises(ConfigError, match=rf"{name}: .*other\.pem holds no PEM"):
            built(**options)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ConfigError, match=r"no file in .*empty holds a PEM certificate"):
        built(ca=empty)


@pytest.mark.parametrize("kind", ["CERTIFICATE", "PRIVATE KEY"])
def test_a_damaged_file_is_named(own: dict[str, Any], tmp_path: Path, kind: str) -> None:
    damaged = tmp_path / "damaged.pem"
    damaged.write_text(f"-----BEGIN {kind}-----\nQUJD{CANARY}QQ==\n-----END {kind}-----\n")
    choices = ({"ca": damaged}, {**own, "cert": damaged}) if kind == "CERTIFICATE" else ({**own, "key": damaged},)
    for options in choices:
        with pytest.raises(ConfigError, match=r"damaged\.pem") as caught:
            built(**options)
        assert CANARY not in repr(caught.value.__cause__)


def test_a_key_of_another_certificate(authority: trustme.CA, own: dict[str, Any], tmp_path: Path) -> None:
    other = write_leaf(authority.issue_cert("other"), tmp_path, "other")
    with pytest.raises(ConfigError, match=r"other\.key is not the key of the certificate .*client\.pem"):
        built(cert=own["cert"], key=other["key"])


def _raises() -> str:
    raise RuntimeError(secret())


@pytest.mark.parametrize(
    ("password", "text"),
    [
        (None, "there is no key_password"),
        (secret("wrong"), "key_password is wrong"),
        ("", "key_password is wrong"),
        (secret() * 1000, "key_password is wrong"),
        (_raises, r"key_password\(\) raised RuntimeError"),
        (lambda: 7, r"key_password\(\) returned int"),
    ],
)
def test_a_key_that_stays_shut(authority: trustme.CA, tmp_path: Path, password: Any, text: str) -> None:
    """Above all OpenSSL must not ask on the terminal."""
    own = write_leaf(authority.issue_cert("client"), tmp_path, "e", password=secret("right"))
    with pytest.raises(ConfigError, match=rf"e\.key is encrypted, and {text}"):
        built(**own, key_password=password)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@pytest.mark.parametrize(("mode", "is_warned"), [(0o600, False), (0o400, False), (0o640, True), (0o644, True)])
def test_a_key_that_others_can_read_is_warned_of(
    own: dict[str, Any], caplog: pytest.LogCaptureFixture, mode: int, is_warned: bool
) -> None:
    own["key"].chmod(mode)
    built(**own)
    assert [record.name for record in caplog.records] == ["etcd_aio.tls"] * is_warned
    if is_warned:
        assert f"mode {mode:o}" in caplog.text


def change(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
async def test_a_mode_is_warned_of_once_however_often_the_files_change(
    ca: Path, own: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    own["key"].chmod(0o640)
    files = CertificateFiles(TLS(ca=ca, **own))
    for _ in range(3):
        await files.context()
        change(ca)
    assert caplog.text.count("mode 640") == 1
    own["key"].chmod(0o644)
    await files.context()
    assert caplog.text.count("mode 644") == 1


# --- rotation ---


async def test_reading_needs_no_thread_of_the_application(ca: Path, own: dict[str, Any]) -> None:
    go = threading.Event()
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as executor:
        loop.set_default_executor(executor)
        busy = loop.run_in_executor(None, go.wait)
        try:
            assert trusted(await CertificateFiles(TLS(ca=ca, **own)).context()) == 1
        finally:
            go.set()
            await busy


async def test_what_did_not_change_is_not_built_again(ca: Path, own: dict[str, Any]) -> None:
    files = CertificateFiles(TLS(ca=ca, **own))
    files.check()
    context = await files.context()
    own["key"].touch()  # a new time of change and the same content
    assert await files.context() is context


@pytest.mark.parametrize("how", ["in place", "renamed", "as a folder", "the same size in the same instant"])
async def test_what_changed_is_read_again(
    authority: trustme.CA, own: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    folder = tmp_path / "v1"
    folder.mkdir()
    link = tmp_path / "current"
    link.symlink_to(folder)
    ca = write_ca(authority, folder / "ca.pem")
    files = CertificateFiles(TLS(ca=link if how == "as a folder" else link / "ca.pem", **own))
    first = await files.context()
    assert await files.context() is first
    new = trustme.CA()
    if how == "in place":
        write_ca(new, ca)
    elif how == "renamed":  # as Kubernetes does, a folder at a time
        (tmp_path / "v2").mkdir()
        write_ca(new, tmp_path / "v2" / "ca.pem")
        (tmp_path / "next").symlink_to(tmp_path / "v2")
        (tmp_path / "next").replace(link)
    elif how == "as a folder":
        write_ca(new, folder / "another.pem")
    else:
        before = ca.stat()
        write_ca(new, ca)
        os.utime(ca, ns=(before.st_atime_ns, before.st_mtime_ns))
    with caplog.at_level(logging.INFO, "etcd_aio.tls"):
        second = await files.context()
    assert second is not first
    assert trusted(second) == (2 if how == "as a folder" else 1)
    assert "new connections use them" in caplog.text


async def test_a_rotation_that_is_half_written_keeps_the_last_context_and_is_told_once(
    authority: trustme.CA, own: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = CertificateFiles(TLS(**own))
    files.check()
    first = await files.context()
    new = write_leaf(authority.issue_cert("client"), tmp_path, "new")
    own["cert"].write_bytes(new["cert"].read_bytes())
    for _ in range(3):
        assert await files.context() is first
    assert len(caplog.records) == 1
    assert "cannot be used; the last certificates stay in use" in caplog.text
    for damage in (own["key"].unlink, lambda: own["key"].write_text(""), lambda: own["key"].write_text(CANARY)):
        damage()
        assert await files.context() is first
    own["key"].write_bytes(new["key"].read_bytes())
    assert await files.context() is not first


async def test_an_encrypted_key_is_asked_for_again_only_if_it_changed(authority: trustme.CA, tmp_path: Path) -> None:
    asked: list[str] = []

    def ask() -> str:
        asked.append(threading.current_thread().name)
        return passwords[-1]

    passwords = [secret("one")]
    own = write_leaf(authority.issue_cert("client"), tmp_path, "e", password=passwords[-1])
    files = CertificateFiles(TLS(**own, key_password=ask))
    files.check()
    first = await files.context()
    assert len(asked) == 1
    passwords.append(secret("two"))
    new = authority.issue_cert("client")
    own["cert"].write_bytes(new.cert_chain_pems[0].bytes())
    own["key"].write_bytes(encrypted(new, passwords[-1]))
    assert await files.context() is not first
    assert asked[1] != threading.current_thread().name, "the loop does not wait for whoever has the password"


async def test_many_who_ask_share_one_reading_and_one_who_gives_up_disturbs_nobody(
    ca: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = CertificateFiles(TLS(ca=ca))
    may_go, readings = threading.Event(), []
    read = files._read

    def slow() -> Loaded:
        readings.append(1)
        assert may_go.wait(5)
        return read()

    monkeypatch.setattr(files, "_read", slow)
    tasks = [asyncio.create_task(files.context()) for _ in range(10)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.sleep(0)
    may_go.set()
    contexts = {id(await task) for task in tasks[1:]}
    assert tasks[0].cancelled()
    assert (len(contexts), len(readings)) == (1, 1)
    await files.context()
    assert len(readings) == 2


@contextmanager
def hanging(path: Path) -> Iterator[None]:
    """In place of a file, a pipe: to open it for reading waits for a writer, as a file system that hangs does."""
    kept = path.rename(path.with_name("kept"))
    os.mkfifo(path)
    try:
        yield
    finally:
        writer = os.open(path, os.O_RDWR)
        kept.replace(path)
        os.close(writer)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
async def test_while_files_cannot_be_read_in_time_the_last_context_is_used(
    ca: Path, own: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(certificates, "_PATIENCE", 0.05)
    files = CertificateFiles(TLS(ca=ca, **own))
    context = await files.context()
    with hanging(Path(own["key"])):
        async with asyncio.timeout(10):
            assert [await files.context() for _ in range(3)] == [context] * 3
    assert [one.getMessage() for one in caplog.records if "in time" in one.getMessage()] == [
        "the certificate files were not read in time; the last certificates stay in use"
    ]
    change(ca)
    async with asyncio.timeout(10):
        while await files.context() is context:  # noqa: ASYNC110 - nothing signals it
            await asyncio.sleep(0.01)


async def test_a_first_reading_that_fails_is_told_to_whoever_asks_and_tried_again(
    authority: trustme.CA, tmp_path: Path
) -> None:
    ca = tmp_path / "later.pem"
    files = CertificateFiles(TLS(ca=ca))
    with pytest.raises(ConfigError, match="No such file"):
        await files.context()
    write_ca(authority, ca)
    assert trusted(await files.context()) == 1


def test_the_name_to_verify() -> None:
    assert CertificateFiles(TLS()).server_name == ""
    assert CertificateFiles(TLS(server_name="etcd")).server_name == "etcd"
