"""contrib/torch/parameters.py: what --rdzv-endpoint and --rdzv-conf say. contrib/torch/__init__.py without torch."""

import subprocess
import sys
from pathlib import Path

import pytest

from etcd_aio import TLS
from etcd_aio.contrib.torch.parameters import read_parameters


def test_the_defaults() -> None:
    assert read_parameters("m1", {}).client_options() == {
        "endpoints": ["http://m1"],
        "tls": None,
        "auth": None,
        "allow_insecure_auth": False,
        "timeout": 60.0,
        "namespace": "torch/elastic/",
        "proxy": None,
    }


def test_several_members() -> None:
    assert read_parameters("m1:2379, m2:2380,", {}).endpoints == ("m1:2379", "m2:2380")
    with pytest.raises(ValueError, match="must name at least one member"):
        read_parameters(" , ", {})


@pytest.mark.parametrize(
    ("config", "tls"),
    [
        ({"protocol": "hTTp"}, None),
        ({"protocol": " HTTPS "}, TLS()),
        ({"ca_cert": "ca.pem"}, TLS(ca="ca.pem")),
        (
            {"protocol": "https", "ssl_cert": "c.pem", "ssl_cert_key": "k.pem", "server_name": "etcd"},
            TLS(cert="c.pem", key="k.pem", server_name="etcd"),
        ),
    ],
)
def test_tls(config: dict[str, str], tls: TLS | None) -> None:
    options = read_parameters("m1", config).client_options()
    assert repr(options["tls"]) == repr(tls)
    assert options["endpoints"] == ["http://m1" if tls is None else "https://m1"]


@pytest.mark.parametrize("config", [{}, {"ca_cert": "ca.pem"}])
def test_a_name_of_dns_is_that_of_the_client(config: dict[str, str]) -> None:
    options = read_parameters("dns:///etcd.svc:2379, m1", config).client_options()
    assert options["endpoints"] == ["dns:///etcd.svc:2379", "https://m1" if config else "http://m1"]


@pytest.mark.parametrize("endpoint", ["http://m1:2379", "https+dns://etcd.svc", "m1,etcd://m2"])
def test_other_schemes_are_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match="without a scheme, or dns:///name:port; the option protocol says"):
        read_parameters(endpoint, {})


def test_a_proxy_is_that_of_the_client() -> None:
    assert read_parameters("m1", {"proxy": "http://p:3128"}).client_options()["proxy"] == "http://p:3128"


def test_no_password_is_shown() -> None:
    assert "secret" not in repr(read_parameters("m1", {"user": "u", "password": "secret"}))
    assert "secret" not in repr(read_parameters("m1", {"proxy": "http://u:secret@p:3128"}))


def test_a_user(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret\n")
    assert read_parameters("m1", {"user": "u", "password_file": str(file)}).auth == ("u", "secret")
    parameters = read_parameters("m1", {"user": "u", "password": "p", "allow_insecure_auth": "true"})
    assert (parameters.auth, parameters.allow_insecure_auth) == (("u", "p"), True)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"protocol": "ftp"}, "^The protocol must be HTTP or HTTPS.$"),
        ({"protocol": "http", "ca_cert": "ca.pem"}, "need the protocol HTTPS"),
        ({"read_timeout": "0"}, "^The read timeout must be a positive integer.$"),
        ({"read_timeout": "soon"}, "^The read timeout must be a positive integer.$"),
        ({"user": "u"}, "needs the option password_file"),
        ({"password": "p"}, "need the option user"),
        ({"password_file": "/missing/file"}, "need the option user"),
        ({"user": "u", "password_file": "/missing/file"}, "password_file.*No such file.*/missing/file"),
        ({"ssl_cert_key": "key.pem"}, "needs the option ssl_cert"),
        ({"server_name": "etcd"}, "need the protocol HTTPS"),
        ({"allow_insecure_auth": "perhaps"}, "must be true or false"),
    ],
)
def test_what_is_invalid(config: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_parameters("m1", config)


def test_torch_is_imported_when_it_is_needed() -> None:
    """torch loads the entry point while it is being imported. Without torch, the error says what to install."""
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "import etcd_aio.contrib.torch as contrib\n"
        "print(contrib.handler_creator() is contrib.create_handler, contrib.NAME)\n"
        "try:\n"
        "    contrib.EtcdStore\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
        "print(hasattr(contrib, 'other'))\n"
    )
    root = Path(__file__).parent.parent.parent
    found = subprocess.run([sys.executable, "-c", code], check=True, cwd=root, capture_output=True, text=True)
    assert found.stdout.splitlines() == [
        "True etcd-v3",
        "etcd_aio.contrib.torch needs torch: pip install torch",
        "False",
    ]


def test_the_command_without_torch_says_what_is_missing() -> None:
    code = (
        "import runpy, sys\n"
        "sys.modules['torch'] = None\n"
        "runpy.run_module('etcd_aio.contrib.torch', run_name='__main__')\n"
    )
    root = Path(__file__).parent.parent.parent
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (1, "etcd_aio.contrib.torch needs torch: pip install torch\n")
