"""The schedule of a DNS name: bounds that hold for any history of answers, failures and connections."""

from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.discovery.addresses import AddressAnswer, FamilyAnswer, kept_addresses, search_names
from etcd_aio.discovery.schedule import Schedule, before_ttl

FRACTIONS = st.floats(0, 1, exclude_max=True)
TTLS = st.floats(0, 2**31)
STEPS = st.lists(st.tuples(st.sampled_from(["answer", "failure", "lost", "connected"]), TTLS, FRACTIONS), max_size=30)


@given(TTLS, FRACTIONS)
def test_a_name_is_asked_within_its_ttl(ttl: float, fraction: float) -> None:
    seconds = before_ttl(ttl, 5.0, 3600.0, lambda: fraction)
    assert 4.0 <= seconds <= max(ttl, 5.0)
    assert seconds <= 3600.0


@given(STEPS)
def test_a_question_is_never_later_than_the_ttl_and_soon_without_a_connection(
    steps: list[tuple[str, float, float]],
) -> None:
    now = 0.0
    drawn = [fraction for _, _, fraction in steps]
    schedule = Schedule(now, lambda: drawn[0])
    is_out = False
    for what, ttl, _ in steps:
        if what == "lost":
            is_out = True
        elif what == "connected":
            is_out = False
            schedule.note_connected()
        else:
            now = max(now, min(schedule.due, now + 3600.0))
            seconds = before_ttl(ttl, 5.0, 3600.0, lambda: drawn[0])
            (schedule.answered if what == "answer" else schedule.failed)(now, seconds)
            assert now < schedule.due <= now + seconds
        if is_out:
            schedule.note_outage(now)
            assert schedule.due <= now + 15.0 * 1.5
        drawn.append(drawn.pop(0))


LABEL = st.text("abc-", min_size=1, max_size=4)
NAMES = st.lists(LABEL, min_size=1, max_size=4).map(".".join)


@given(NAMES, st.lists(NAMES, max_size=3), st.integers(0, 6))
def test_every_search_ends_with_or_begins_by_the_name_itself(name: str, domains: list[str], ndots: int) -> None:
    asked = search_names(name, domains, ndots)
    assert all(one.endswith(".") and one.startswith(name) for one in asked)
    assert len(asked) == len(set(asked)) <= len(domains) + 1
    assert asked[0 if name.count(".") >= ndots else -1] == f"{name}."
    assert search_names(f"{name}.", domains, ndots) == (f"{name}.",)


FAMILIES = st.one_of(
    st.builds(FamilyAnswer, st.lists(LABEL, max_size=3).map(tuple), TTLS),
    st.builds(FamilyAnswer, error=st.just("SERVFAIL")),
)
ANSWERS = st.builds(AddressAnswer, FAMILIES, FAMILIES)


@given(ANSWERS, ANSWERS)
def test_an_address_goes_only_by_an_answer_of_its_family(known: AddressAnswer, answer: AddressAnswer) -> None:
    kept = kept_addresses(known, answer)
    for before, said, after in ((known.v4, answer.v4, kept.v4), (known.v6, answer.v6, kept.v6)):
        assert after.addresses == (before.addresses if said.error else said.addresses)
