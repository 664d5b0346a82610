"""cli/contexts.py, cli/context.py, cli/connection.py: which setting wins, and no secret in the file."""

import stat
from pathlib import Path

import pytest

from etcd_aio.cli.connection import ClientSettings
from etcd_aio.cli.contexts import Context, ContextFile, Contexts, dump, parse
from etcd_aio.cli.outcome import Failure
from etcd_aio.fake import FakeEtcd
from tests.support.command_here import CommandLine

PROD = Context(
    "prod", {"endpoints": "http://prod:1", "user": "root", "password_command": "printf s3cret", "hex": "true"}
)


def connection(flags: dict[str, str], environ: dict[str, str], context: Context = PROD) -> ClientSettings:
    return ClientSettings(flags, environ, None, context)


def test_flags_win_over_variables_and_these_over_the_context() -> None:
    assert connection({}, {}).endpoints == ("http://prod:1",)
    assert connection({}, {"ETCDCTL_ENDPOINTS": "b:2"}).endpoints == ("b:2",)
    assert connection({"endpoints": "c:3"}, {"ETCDCTL_ENDPOINTS": "b:2"}).endpoints == ("c:3",)
    assert connection({"hex": "false"}, {}).switch("hex") is False
    assert connection({}, {}).switch("hex") is True
    assert connection({"discovery_srv": "example.com"}, {}).setting("endpoints") == ""


def test_a_variable_has_connections_renewed() -> None:
    environ = {"ETCDCTL_INSECURE_TRANSPORT": "false", "ETCD_AIO_TLS_RECONNECT": "true"}
    settings = connection({}, environ, Context("x", {}))
    assert settings.client()._balancer._renewer is not None
    assert settings.unknown_variables == ()
    del environ["ETCD_AIO_TLS_RECONNECT"]
    assert connection({}, environ, Context("x", {})).client()._balancer._renewer is None


def test_the_proxy_of_a_flag_wins_over_the_variable_and_this_over_the_context() -> None:
    context = Context("x", {"endpoints": "http://m1:1", "proxy": "http://context:1"})

    def chosen(flags: dict[str, str], environ: dict[str, str]) -> str | None:
        proxy = connection(flags, environ, context).client()._balancer.target("http://m1:1").proxy
        return None if proxy is None else proxy.name

    variable = {"ETCD_PROXY": "http://variable:1", "HTTP_PROXY": "http://other:1"}
    assert chosen({}, {}) == "http://context:1"
    assert chosen({}, variable) == "http://variable:1"
    assert chosen({"proxy": "http://flag:1"}, variable) == "http://flag:1"
    assert chosen({"proxy": ""}, variable) is None
    with pytest.raises(Failure, match=r"^--proxy must begin") as caught:
        connection({"proxy": "s3cret"}, {}).client()
    assert "s3cret" not in str(caught.value)


def test_another_user_does_not_get_the_password_of_the_context() -> None:
    with pytest.raises(Failure, match="no terminal"):
        connection({"user": "other"}, {}).client()
    with pytest.raises(Failure, match="failed"):
        connection({}, {}, Context("x", {"user": "u", "password_command": "false"})).client()


@pytest.mark.parametrize(
    "text",
    [
        "current = 1",
        "unknown = ''",
        "[context.a]\npassword = 'x'",
        "[context.a]\nuser = 'u:x'",
        "[context.a]\nproxy = 'http://u:x@p'",
        "[context.a]\nendpoints = ['a']",
        "context = 1",
        "[",
    ],
)
def test_a_file_with_something_else_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(Failure, match=r"config\.toml"):
        ContextFile(path).read()


def test_names_and_settings_of_any_characters_come_back() -> None:
    name = 'a."b"\\ \n\t\x7fä\U0001f600'
    contexts = Contexts(name, {name: Context(name, {"endpoints": name}), "b": Context("b", {})})
    assert parse(dump(contexts)) == contexts


@pytest.mark.anyio
async def test_the_verbs_keep_contexts_in_a_file_of_the_user(command: CommandLine, home: Path) -> None:
    assert await command("context", "add", "one", "--endpoints=a:1", "--cacert=ca.pem") == 0
    assert (
        await command("context", "add", "two", "--endpoints=b:2", "--user=u", "--password-command=pass show s3cret")
        == 0
    )
    path = home / "config" / "etcd-aio" / "config.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ContextFile().read().by_name["one"].settings["cacert"] == str(Path.cwd() / "ca.pem")
    assert await command("context", "list") == 0
    assert command.out == b"* one a:1\n  two b:2\n"
    assert await command("context", "use", "two") == 0
    assert await command("context", "remove", "two") == 0
    assert await command("context", "list") == 0
    assert command.out == b"  one a:1\n"
    for words in (
        "use two",
        "remove two",
        "add",
        "add x --user=u:p",
        "add x --proxy=http://u:p@p:3128",
        "add x --password=p",
        "add x --password-command=p",
    ):
        assert await command("context", *words.split()) == 128, words
    assert await command("get", "a", "--context=two") == 128


@pytest.mark.anyio
async def test_a_command_takes_what_is_missing_from_the_context(
    fake: FakeEtcd, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in ("user add root:s3cret", "user grant-role root root", "auth enable"):
        assert await command(*words.split()) == 0
    assert await command("get", "a") != 0
    monkeypatch.setenv("ETCD_AIO_CONTEXT", "prod")
    added = await command("context", "add", "prod", "--user=root", "--password-command=printf s3cret", "-w", "json")
    assert added == 0
    assert await command("put", "a", "1") == 0
    assert command.out.startswith(b"{")
    assert "s3cret" not in ContextFile().path.read_text().replace("printf s3cret", "")
    assert fake.keys() == {b"a": b"1"}
