"""transport/metadata.py: request metadata: two tuples, made again with the token and never otherwise."""

import pytest

from etcd_aio.transport.metadata import RequestMetadata, token_of

PLAIN = (("client-api-version", "3.7"),)
LEADER = (("hasleader", "true"),)


@pytest.mark.parametrize("require_leader", [True, False])
def test_a_token_comes_and_goes(require_leader: bool) -> None:
    metadata = RequestMetadata("3.7", require_leader=require_leader)
    leader = LEADER if require_leader else ()
    assert (metadata.plain, metadata.with_leader) == (PLAIN, PLAIN + leader)
    assert token_of(metadata.with_leader) == ""
    for token in ("a-c4n4ry", "b-c4n4ry"):
        metadata.carry(token)
        assert metadata.plain == (*PLAIN, ("token", token))
        assert metadata.with_leader == (*PLAIN, *leader, ("token", token))
        assert token_of(metadata.plain) == token_of(metadata.with_leader) == token
    metadata.carry("")
    assert (metadata.plain, metadata.with_leader) == (PLAIN, PLAIN + leader)


def test_a_token_does_not_show_itself() -> None:
    metadata = RequestMetadata("3.7", require_leader=True)
    metadata.carry("a-c4n4ry")
    assert "c4n4ry" not in repr(metadata.with_leader)
    assert "c4n4ry" not in repr(token_of(metadata.plain))
