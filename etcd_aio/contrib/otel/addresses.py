"""From the name of an endpoint to the attributes `server.address` and `server.port`. Pure."""

from etcd_aio.contrib.otel import semconv


def address_of(endpoint: str) -> dict[str, str | int]:
    """The attributes of an endpoint: "https://m1:2379", "[::1]:2379" or "unix:/run/etcd.sock"; none for no endpoint.

    They come from the configuration, as the conventions have it, and not from the address of the connection.
    """
    scheme, found, rest = endpoint.partition("://")
    name = rest if found else endpoint
    if scheme in {"unix", "unixs"} or endpoint.startswith(("unix:", "unixs:")):
        return {semconv.SERVER_ADDRESS: name.partition(":")[2] if not found else name}
    host, _, port = name.rpartition(":")
    if not host or not port.isdecimal():
        return {semconv.SERVER_ADDRESS: name} if name else {}
    return {semconv.SERVER_ADDRESS: host.removeprefix("[").removesuffix("]"), semconv.SERVER_PORT: int(port)}
