"""config/environ.py: each variable of etcdctl as an option, and values that cannot work."""

import pytest

from etcd_aio.config import Settings, read_environment
from etcd_aio.errors import ConfigError


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, Settings()),
        ({"ENDPOINTS": ""}, Settings()),
        ({"ENDPOINTS": "m1:2379,http://m2"}, Settings(("m1:2379", "http://m2"))),
        ({"USER": "root:c4n4ry:x"}, Settings(auth=("root", "c4n4ry:x"))),
        ({"USER": "root", "PASSWORD": "c4n4ry"}, Settings(auth=("root", "c4n4ry"))),
        ({"USER": "a:b", "PASSWORD": "c4n4ry"}, Settings(auth=("a:b", "c4n4ry"))),
        ({"AUTH_JWT_TOKEN": "c4n4ry"}, Settings(token="c4n4ry")),
        ({"CACERT": "ca"}, Settings(tls={"ca": "ca"})),
        ({"CACERT": "ca", "CERT": "c", "KEY": "k"}, Settings(tls={"ca": "ca", "cert": "c", "key": "k"})),
        ({"INSECURE_TRANSPORT": "true"}, Settings()),
        ({"INSECURE_TRANSPORT": "true", "CACERT": "ca"}, Settings(tls={"ca": "ca"})),
        ({"INSECURE_TRANSPORT": "false"}, Settings(tls={})),
        ({"INSECURE_TRANSPORT": "F"}, Settings(tls={})),
        ({"INSECURE_TRANSPORT": "f"}, Settings(tls={})),
        ({"INSECURE_TRANSPORT": "T"}, Settings()),
        ({"INSECURE_TRANSPORT": "t"}, Settings()),
        ({"MAX_REQUEST_BYTES": "0", "MAX_RECV_BYTES": "0"}, Settings()),
        ({"INSECURE_SKIP_TLS_VERIFY": "false"}, Settings()),
        ({"DIAL_TIMEOUT": "3s", "COMMAND_TIMEOUT": "1m"}, Settings(options={"timeout": 60.0, "connect_timeout": 3.0})),
        ({"KEEPALIVE_TIME": "2s"}, Settings(options={"keepalive_time": 10.0})),
        (
            {"KEEPALIVE_TIME": "30s", "KEEPALIVE_TIMEOUT": "6s"},
            Settings(options={"keepalive_time": 30.0, "keepalive_timeout": 6.0}),
        ),
        (
            {"MAX_REQUEST_BYTES": "5", "MAX_RECV_BYTES": "6"},
            Settings(options={"max_send_bytes": 5, "max_receive_bytes": 6}),
        ),
        ({"DISCOVERY_SRV": "a.b"}, Settings(discovery_srv="a.b")),
        ({"DISCOVERY_SRV": "a.b", "INSECURE_DISCOVERY": "false"}, Settings(discovery_srv="a.b", tls={})),
        (
            {"DISCOVERY_SRV": "a.b", "DISCOVERY_SRV_NAME": "dev"},
            Settings(discovery_srv="a.b", options={"discovery_srv_name": "dev"}),
        ),
        ({"DISCOVERY_SRV_NAME": "dev", "INSECURE_DISCOVERY": "false"}, Settings()),
        ({"WRITE_OUT": "json", "HEX": "true", "API": "3"}, Settings()),
    ],
)
def test_variables(variables: dict[str, str], expected: Settings) -> None:
    others = {"HOME": "/", "ENDPOINTS": "m9", "ETCD_NAME": "m9", "etcdctl_endpoints": "m9"}
    assert read_environment({f"ETCDCTL_{name}": value for name, value in variables.items()} | others) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("http://me:c4n4ry@p:3128", "http://me:c4n4ry@p:3128"),
        ("environment", "environment"),
        *((text, "") for text in ("", "none", "off", "on", "readonly")),
    ],
)
def test_the_proxy(value: str, expected: str) -> None:
    assert read_environment({"ETCD_PROXY": value}) == Settings(proxy=expected)
    assert read_environment({"ETCDCTL_PROXY": value, "HTTP_PROXY": value}) == Settings()


def test_a_proxy_that_is_none_is_refused_and_not_repeated() -> None:
    for value in ("c4n4ry", "http://me:c4n4ry@p@q", "c4n4ry://p"):
        with pytest.raises(ConfigError, match=r"^ETCD_PROXY must") as caught:
            read_environment({"ETCD_PROXY": value})
        assert "c4n4ry" not in str(caught.value)


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"USER": "c4n4ry"}, "ETCDCTL_USER needs a password"),
        ({"USER": ":c4n4ry"}, "ETCDCTL_USER needs a password"),
        ({"PASSWORD": "c4n4ry"}, "ETCDCTL_PASSWORD needs ETCDCTL_USER"),
        ({"CERT": "c4n4ry"}, "ETCDCTL_CERT and ETCDCTL_KEY"),
        ({"KEY": "c4n4ry"}, "ETCDCTL_CERT and ETCDCTL_KEY"),
        ({"DIAL_TIMEOUT": "c4n4ry"}, "ETCDCTL_DIAL_TIMEOUT must be a duration"),
        ({"MAX_RECV_BYTES": "-1"}, "ETCDCTL_MAX_RECV_BYTES"),
        ({"INSECURE_TRANSPORT": "c4n4ry"}, "ETCDCTL_INSECURE_TRANSPORT"),
        ({"INSECURE_SKIP_TLS_VERIFY": "true"}, "refused"),
        ({"INSECURE_SKIP_TLS_VERIFY": "1", "CACERT": "ca"}, "refused"),
        ({"ENDPOINTS": "m1", "DISCOVERY_SRV": "a"}, "exclude"),
    ],
)
def test_what_cannot_work(variables: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        read_environment({f"ETCDCTL_{name}": value for name, value in variables.items()})
    assert "c4n4ry" not in str(caught.value)


def test_who_brings_his_own_tls_is_asked_nothing_about_it() -> None:
    variables = {"ETCDCTL_INSECURE_SKIP_TLS_VERIFY": "true", "ETCDCTL_CERT": "only", "ETCDCTL_ENDPOINTS": "m1"}
    assert read_environment(variables, has_tls=True) == Settings(("m1",))


@pytest.mark.parametrize(
    ("variables", "tls"),
    [
        ({"ETCDCTL_CACERT": "ca", "ETCD_AIO_TLS_RECONNECT": "true"}, {"ca": "ca", "reconnect": True}),
        ({"ETCDCTL_CACERT": "ca", "ETCD_AIO_TLS_RECONNECT": "0"}, {"ca": "ca", "reconnect": False}),
        ({"ETCDCTL_CACERT": "ca", "ETCD_AIO_TLS_RECONNECT": ""}, {"ca": "ca"}),
        ({"ETCDCTL_INSECURE_TRANSPORT": "false", "ETCD_AIO_TLS_RECONNECT": "true"}, {"reconnect": True}),
        ({"ETCD_AIO_TLS_RECONNECT": "true"}, None),
    ],
)
def test_connections_are_renewed_if_the_variables_ask_for_tls(variables: dict[str, str], tls: object) -> None:
    assert read_environment(variables).tls == tls


def test_a_switch_for_renewed_connections_that_is_none() -> None:
    with pytest.raises(ConfigError, match="ETCD_AIO_TLS_RECONNECT must be true or false"):
        read_environment({"ETCDCTL_CACERT": "ca", "ETCD_AIO_TLS_RECONNECT": "yes"})
