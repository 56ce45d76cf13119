"""Lists cut, merged and walked in parallel: values, inverses, and lengths that do not fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minijax.core import sequences

pytestmark = pytest.mark.feature("CR-15", "CR-16")

choices_and_values = st.lists(st.tuples(st.booleans(), st.integers()))


def test_safe_zip_gives_tuples():
    assert sequences.safe_zip([1, 2], "ab") == [(1, "a"), (2, "b")]


def test_safe_zip_of_nothing_is_empty():
    assert sequences.safe_zip() == []


def test_safe_zip_rejects_unequal_lengths():
    with pytest.raises(
        ValueError, match=r"safe_zip: lengths differ\.\n  got       lengths 1, 2, 1"
    ):
        sequences.safe_zip([1], [1, 2], [1])


def test_safe_map_applies_in_order():
    assert sequences.safe_map(lambda x, y: x - y, [5, 7], [1, 2]) == [4, 5]


def test_safe_map_rejects_unequal_lengths():
    with pytest.raises(ValueError, match="safe_map: lengths differ"):
        sequences.safe_map(max, [1], [])


def test_unzip2_splits_pairs():
    assert sequences.unzip2([(1, "a"), (2, "b")]) == ((1, 2), ("a", "b"))


def test_unzip2_of_nothing_is_two_tuples():
    assert sequences.unzip2([]) == ((), ())


def test_unzip3_splits_triples():
    assert sequences.unzip3([(1, 2, 3), (4, 5, 6)]) == ((1, 4), (2, 5), (3, 6))


def test_unzip3_of_nothing_is_three_tuples():
    assert sequences.unzip3([]) == ((), (), ())


def test_partition_list_puts_false_first():
    assert sequences.partition_list([True, False, True], "abc") == (["b"], ["a", "c"])


def test_partition_list_rejects_unequal_lengths():
    with pytest.raises(ValueError, match="lengths 2, 3"):
        sequences.partition_list([True, False], "abc")


@given(choices_and_values)
def test_merge_lists_undoes_partition_list(pairs):
    choose, values = sequences.unzip2(pairs)
    parts = sequences.partition_list(choose, values)
    assert sequences.merge_lists(choose, *parts) == list(values)


@pytest.mark.parametrize(("where_false", "where_true"), [([], [1]), ([1, 2], [3]), ([1], [])])
def test_merge_lists_rejects_wrong_lengths(where_false, where_true):
    with pytest.raises(ValueError, match="expected  lengths 1 and 1"):
        sequences.merge_lists([False, True], where_false, where_true)


def test_split_list_returns_the_rest():
    assert sequences.split_list([1, 2, 3, 4], [1, 2]) == [[1], [2, 3], [4]]


def test_split_list_may_leave_nothing():
    assert sequences.split_list((1, 2), [2]) == [[1, 2], []]


@pytest.mark.parametrize("lengths", [[3], [1, 2], [-1]])
def test_split_list_rejects_lengths_that_do_not_fit(lengths):
    with pytest.raises(ValueError, match="split_list: the pieces do not fit"):
        sequences.split_list([1, 2], lengths)


def test_split_list_checked_uses_up_the_list():
    assert sequences.split_list_checked([1, 2, 3], [1, 0, 2]) == [[1], [], [2, 3]]


def test_split_list_checked_rejects_a_rest():
    with pytest.raises(ValueError, match="expected  lengths that sum to 3"):
        sequences.split_list_checked([1, 2, 3], [1, 1])


def test_tuple_delete_removes_one():
    assert sequences.tuple_delete([1, 2, 3], 1) == (1, 3)


def test_tuple_insert_accepts_the_end():
    assert sequences.tuple_insert((1, 2), 2, 3) == (1, 2, 3)


def test_tuple_update_replaces_one():
    assert sequences.tuple_update((1, 2, 3), 0, 9) == (9, 2, 3)


@given(st.lists(st.integers(), min_size=1), st.data())
def test_tuple_insert_undoes_tuple_delete(values, data):
    position = data.draw(st.integers(0, len(values) - 1))
    shorter = sequences.tuple_delete(values, position)
    assert sequences.tuple_insert(shorter, position, values[position]) == tuple(values)


@pytest.mark.parametrize(
    "call",
    [
        lambda: sequences.tuple_delete((1, 2), 2),
        lambda: sequences.tuple_delete((1, 2), -1),
        lambda: sequences.tuple_insert((1, 2), 3, 0),
        lambda: sequences.tuple_update((), 0, 0),
    ],
)
def test_positions_out_of_range_are_rejected(call):
    with pytest.raises(IndexError, match="the position is out of range"):
        call()
