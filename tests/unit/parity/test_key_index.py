"""Keys that are looked up by what is known of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cdc_consumer.parity.witness.history import Key
from cdc_consumer.parity.witness.row_keys import KeyIndex


@given(
    st.sets(st.tuples(st.sampled_from("ab"), st.sampled_from("cd"), st.sampled_from("ef"))),
    st.tuples(st.sampled_from(["a", None]), st.sampled_from(["c", None]), st.sampled_from(["e", None])),
)
def test_a_key_of_which_a_part_is_not_known_is_any_that_fits(keys: set[Key], known: tuple[str | None, ...]) -> None:
    fitting = {key for key in keys if all(part in (None, own) for part, own in zip(known, key, strict=True))}
    assert set(KeyIndex(keys).match(known)) == fitting
