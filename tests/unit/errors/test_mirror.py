"""errors/mirror.py: errors of mirrors."""

import pickle

from etcd_aio.errors import EtcdError, MirrorConflictError, MirrorError


def test_the_conflict_names_the_other_mirror() -> None:
    error = MirrorConflictError("another mirror writes the checkpoint 'c'", writer="ab12")
    assert isinstance(error, MirrorError)
    assert (error.writer, error.retryable, error.maybe_applied) == ("ab12", False, False)
    assert str(MirrorConflictError()) == "another mirror writes this checkpoint"
    assert pickle.loads(pickle.dumps(error)).writer == "ab12"
    assert issubclass(MirrorError, EtcdError)
