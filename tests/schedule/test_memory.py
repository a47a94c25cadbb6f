"""The memory plan: nothing overlaps that is alive together, and the arena stays near the bound."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from flambeau.schedule.memory import ALIGNMENT, Lifetime, aligned, offsets, peak

LIVES = st.lists(
    st.builds(
        lambda nbytes, first, length: Lifetime(nbytes, first, first + length),
        st.integers(0, 5000),
        st.integers(0, 20),
        st.integers(0, 6),
    ),
    max_size=14,
)


@given(LIVES)
def test_buffers_alive_together_do_not_overlap(lives):
    places, total = offsets(lives)
    for (a, x), (b, y) in itertools.combinations(zip(places, lives), 2):
        if x.overlaps(y) and x.nbytes and y.nbytes:
            assert a + x.nbytes <= b or b + y.nbytes <= a
    assert all(p % ALIGNMENT == 0 and p + x.nbytes <= total for p, x in zip(places, lives))
    assert total >= peak(lives)


def test_a_chain_needs_two_buffers():
    chain = [Lifetime(1000, k, k + 1) for k in range(50)]
    _, total = offsets(chain)
    assert total == 2 * aligned(1000) == peak(chain)


def test_nothing_needs_nothing():
    assert offsets([]) == ((), 0)
