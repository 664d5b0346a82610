"""The exceptions of the testing kit. They do not belong to the client's exceptions."""


class EtcdNotFoundError(RuntimeError):
    """No suitable etcd binary was found. The message names the searched places, and how to get one."""


class EtcdBuildError(RuntimeError):
    """An etcd server could not be built or unpacked. The message has the end of the output of Go or apt."""


class EtcdStartError(RuntimeError):
    """A server did not start, or not in time. The message has the ends of its log.

    Attributes:
        is_port_taken: another program listens on one of its ports.
    """

    def __init__(self, message: str, *, is_port_taken: bool = False) -> None:
        super().__init__(message)
        self.is_port_taken = is_port_taken
