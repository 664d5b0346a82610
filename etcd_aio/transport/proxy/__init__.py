"""Connections through a proxy: `http_connect` and `socks5` are the protocols, without IO, and `tunnel` opens them."""
