"""The native engine: HTTP/2 by `etcd_aio.http2`."""
