"""The gateway engine: etcd's RPCs as JSON over HTTP/1, for networks that HTTP/2 does not pass.

`mapping` and `replies` turn messages into JSON and back, `http1` and `socket` into bytes, `connection` is a pool of
sockets (`channel`) for calls (`call`) and streams (`stream`, `lines`), and `engine` opens such connections.
"""
