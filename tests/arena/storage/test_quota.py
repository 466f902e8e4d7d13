"""The quota of an owner, over any submissions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from arena.storage.submissions import MOST_STORED, MOST_VERSIONS, StoredSubmission, surplus

KEPT = st.tuples(st.integers(0, 30), st.booleans())


@given(st.lists(KEPT, max_size=70), st.integers(1, 30))
def test_the_quota_takes_as_few_as_it_can_of_those_that_nobody_needs(
    kept: list[tuple[int, bool]], most_mib: int
) -> None:
    stored = [
        StoredSubmission(number, str(program), (1 + program % 5) * most_mib << 19, is_needed)
        for number, (program, is_needed) in enumerate(kept)
    ]
    gone = surplus(stored)

    def fits(left: list[StoredSubmission]) -> bool:
        size = sum({one.program: one.stored for one in left}.values())
        return len(left) <= MOST_VERSIONS and size <= MOST_STORED

    free = [one.number for one in stored if not one.is_needed]
    left = [one for one in stored if one.number not in gone]
    assert list(gone) == free[: len(gone)]  # the oldest first
    assert fits(left) or len(gone) == len(free)
    if gone:
        assert not fits([one for one in stored if one.number not in gone[:-1]])
