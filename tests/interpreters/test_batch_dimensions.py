"""Where the dimension of a batch stands, and how it is moved."""

import numpy as np
import pytest

from minijax.interpreters.structural import moveaxis, new_axis, to_batch_dim


@pytest.mark.feature("BT-07")
@pytest.mark.parametrize("target", [0, 1, 2])
def test_batch_dimension_moves_where_it_is_wanted(target: int) -> None:
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)

    np.testing.assert_array_equal(moveaxis(x, 1, target), np.moveaxis(x, 1, target))
    np.testing.assert_array_equal(to_batch_dim(x, 2, target, 4), np.moveaxis(x, 2, target))


@pytest.mark.feature("BT-07")
@pytest.mark.parametrize("target", [0, 1, 2])
def test_value_that_examples_share_is_repeated(target: int) -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    expected = np.repeat(np.expand_dims(x, target), 5, target)

    np.testing.assert_array_equal(to_batch_dim(x, None, target, 5), expected)
    np.testing.assert_array_equal(new_axis(x, 5, target), expected)
