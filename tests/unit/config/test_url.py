"""config/url.py: which options each URL gives, and texts that are no URL."""

import pytest

from etcd_aio.config import Settings, parse_url
from etcd_aio.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("etcd://m1", Settings(("http://m1",))),
        ("ETCD://m1:1,[::1]:2/", Settings(("http://m1:1", "http://[::1]:2"))),
        ("etcds://m1:2379,m2", Settings(("https://m1:2379", "https://m2"))),
        ("etcd://m1/?timeout=3s", Settings(("http://m1",), options={"timeout": 3.0})),
        ("etcd://m1?timeout=none&retry=never", Settings(("http://m1",), options={"timeout": None, "retry": "never"})),
        ("etcd://m1?", Settings(("http://m1",))),
        ("etcds://root:c4n4ry@m1", Settings(("https://m1",), auth=("root", "c4n4ry"))),
        ("etcds://r%40t:%2Fc4n4ry%3A%25@m1", Settings(("https://m1",), auth=("r@t", "/c4n4ry:%"))),
        ("etcds://r%C3%A9:p+w@m1", Settings(("https://m1",), auth=("r\u00e9", "p+w"))),
        (
            "etcds://m1/?ca=/a%20b/ca&cert=c.pem&key=k.pem&server_name=etcd",
            Settings(("https://m1",), tls={"ca": "/a b/ca", "cert": "c.pem", "key": "k.pem", "server_name": "etcd"}),
        ),
        ("etcd+unix:///run/e.sock?auto_sync=1m", Settings(("unix:///run/e.sock",), options={"auto_sync": 60.0})),
        ("etcds+unix:///run/%C3%A9", Settings(("unixs:///run/\u00e9",))),
        ("etcd://m1/app", Settings(("http://m1",), options={"namespace": "app"})),
        (
            "etcds://m1,m2/a/b/?retry=never",
            Settings(("https://m1", "https://m2"), options={"namespace": "a/b/", "retry": "never"}),
        ),
        ("etcd://m1//app%2F%C3%A9%3F", Settings(("http://m1",), options={"namespace": "/app/\u00e9?"})),
        ("etcd://m1/?namespace=app/", Settings(("http://m1",), options={"namespace": "app/"})),
        ("etcd+unix:///run/e.sock?namespace=app/", Settings(("unix:///run/e.sock",), options={"namespace": "app/"})),
        ("etcd+dns://Etcd.ns:1,etcd2/", Settings(("http+dns://Etcd.ns:1", "http+dns://etcd2"))),
        ("ETCDS+DNS://etcd/app", Settings(("https+dns://etcd",), options={"namespace": "app"})),
        ("etcds+dns://etcd/?ca=/ca.pem", Settings(("https+dns://etcd",), tls={"ca": "/ca.pem"})),
        ("etcd://m1/?proxy=socks5h://p:1080", Settings(("http://m1",), proxy="socks5h://p:1080")),
        ("etcd://m1/?proxy=none", Settings(("http://m1",))),
        (
            "etcd+srv://example.com?proxy=http%3A%2F%2Fme:c4n%2534ry%40p",
            Settings(discovery_srv="example.com", proxy="http://me:c4n%34ry@p"),
        ),
        ("etcd+srv://example.com", Settings(discovery_srv="example.com")),
        ("etcd+srv://example.com/app/", Settings(discovery_srv="example.com", options={"namespace": "app/"})),
        (
            "etcds://m1/?ca=ca.pem&reconnect=true",
            Settings(("https://m1",), tls={"ca": "ca.pem", "reconnect": True}),
        ),
        ("etcds://m1/?reconnect=0", Settings(("https://m1",), tls={"reconnect": False})),
        (
            "etcds+srv://example.com/?discovery_srv_name=dev",
            Settings(discovery_srv="example.com", tls={}, options={"discovery_srv_name": "dev"}),
        ),
    ],
)
def test_urls(url: str, expected: Settings) -> None:
    assert parse_url(url) == expected


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "begins with"),
        ("m1:2379", "begins with"),
        ("http://m1", "begins with"),
        ("etcd:/m1", "begins with"),
        ("etcd+tcp://m1", "begins with"),
        ("etcd://", "needs a host"),
        ("etcd:///x", "needs a host"),
        ("etcd://m1,", "host #2"),
        ("etcd://m1:0", "host #1"),
        ("etcd://m1,m2:port", "host #2"),
        ("etcd://[fe80::1%25eth0]", "host #1"),
        ("etcd://m1/app/?namespace=app/", "two namespaces"),
        ("etcd://m1/%zz", "percent-encoded"),
        ("etcd://m1/%ff", "UTF-8"),
        ("etcd://m1/?namespace=", "namespace must not be empty"),
        ("etcd://m1/#top", "%23"),
        ("etcd://m1/?reconnect=true", "begins with etcds"),
        ("etcds://m1/?reconnect=c4n4ry", "reconnect must be true or false"),
        ("etcd://m1 ", "white space"),
        ("etcd://m1\n", "white space"),
        ("etcd://root@m1", "name and a password"),
        ("etcd://root:@m1", "name and a password"),
        ("etcd://:c4n4ry@m1", "name and a password"),
        ("etcd://a:c4n4ry@m1,b:c4n4ry@m2", "can have one"),
        ("etcd://a:c4n4ry:c4n4ry@m1", "can have one"),
        ("etcd://a:c4n4ry%zz@m1", "percent-encoded"),
        ("etcd://a:c4n4ry%ff@m1", "UTF-8"),
        ("etcd://a:c4n4ry%00@m1", "UTF-8"),
        ("etcd://a:c4n4ry/x@m1", "percent-encode"),
        ("etcd://a:c4n4ry?x@m1", "percent-encode"),
        ("etcd://a:c4n4ry#x@m1", "%23"),
        ("etcd://a:c4n4ry", "host #1"),
        ("etcd://m1/?proxy=http://me:c4n4ry@p", "percent-encode"),
        ("etcd://m1/?proxy=c4n4ry", "proxy must begin with"),
        ("etcd://m1/?timeouts=3s", "unknown option 'timeouts' .* did you mean 'timeout'"),
        ("etcd://m1/?policy=pinned&retries=never", "unknown option 'retries' .* did you mean 'retry'"),
        ("etcd://m1/?c4n4ry=3s", "unknown option #1"),
        ("etcd://m1/?c4n4ry", "unknown option #1"),
        ("etcd://m1/?endpoints=m2", "unknown option #1"),
        ("etcd://m1/?password=c4n4ry", "unknown option #1"),
        ("etcd://m1/?timeout=3s&timeout=4s", "option timeout is given twice"),
        ("etcds://m1/?ca=a&ca=b", "option ca is given twice"),
        ("etcd://m1/?timeout=c4n4ry", "timeout must be a duration"),
        ("etcd://m1/?timeout", "timeout must be a duration"),
        ("etcd://m1/?timeout=%zz", "percent-encoded"),
        ("etcd://m1/?ca=/ca.pem", "etcds"),
        ("etcds://m1/?ca=", "must not be empty"),
        ("etcd://m1/?discovery_srv_name=dev", "begins with etcd\\+srv"),
        ("etcd+unix://run/e.sock", "no host"),
        ("etcd+unix://", "needs a path"),
        ("etcd+unix:///", "needs a path"),
        ("etcd+unix:///run/a%20b", "needs a path"),
        ("etcd+dns://", "needs a host"),
        ("etcd+dns:///etcd", "needs a host"),
        ("etcd+dns://a b", "white space"),
        ("etcd+dns://etcd/?discovery_srv_name=dev", "begins with etcd\\+srv"),
        ("etcd+srv://", "one domain"),
        ("etcd+srv://a,b", "one domain"),
        ("etcd+srv://a:1", "one domain"),
    ],
)
def test_what_is_no_url(url: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        parse_url(url)
    assert "c4n4ry" not in str(caught.value)
    assert caught.value.__context__ is None, "an error underneath would hold what must not be repeated"


def test_what_is_no_text() -> None:
    with pytest.raises(TypeError, match="int"):
        parse_url(5)  # type: ignore[arg-type]
