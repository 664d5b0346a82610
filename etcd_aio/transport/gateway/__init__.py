"""The gateway engine: etcd's RPCs as JSON over HTTP/1, for networks that HTTP/2 does not pass.

`json_mapping` turns messages into JSON and back, and `replies` maps HTTP answers to replies and errors. `http1` and
`websocket` are the protocols, `connection` is a pool of sockets (`channel`) for calls (`call`) and streams (`stream`,
`lines`), and `engine` opens such connections.
"""
