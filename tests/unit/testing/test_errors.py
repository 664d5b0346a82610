"""testing/errors.py: the kit's own errors."""

from etcd_aio.testing import EtcdStartError


def test_a_start_error_says_whether_a_port_was_taken() -> None:
    assert not EtcdStartError("it ended").is_port_taken
    assert EtcdStartError("it ended", is_port_taken=True).is_port_taken
