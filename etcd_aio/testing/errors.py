"""What can go wrong in the testing kit, as classes.

Knows: its own three failures. Never knows: the client's exception tree; a broken test bench is no answer of etcd's.
"""


class EtcdNotFoundError(RuntimeError):
    """No etcd binary fits. The message tells where it was looked for and how to get one."""


class EtcdBuildError(RuntimeError):
    """An etcd server could not be built or unpacked. The message holds the end of what Go or apt said."""


class EtcdStartError(RuntimeError):
    """A server did not come up, or not in time. The message holds the ends of its log.

    Attributes:
        is_port_taken: somebody else listens on one of its ports.
    """

    def __init__(self, message: str, *, is_port_taken: bool = False) -> None:
        super().__init__(message)
        self.is_port_taken = is_port_taken
