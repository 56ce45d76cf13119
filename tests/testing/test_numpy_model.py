"""What the simulator computes in NumPy is what the compiled operations compute."""

import numpy as np
import pytest

import minijax as jax
from minijax import lax
from minijax.core import tree
from minijax.core.primitive import PRIMITIVES
from minijax.testing import numpy_model, simulate_program
from tests.lax.test_laws import RECORDS, assert_close, wide_if


@pytest.mark.parametrize(
    ("record", "dtype"),
    [pytest.param(r, dtype, id=f"{r.id}-{dtype}") for r in RECORDS for dtype in r.dtypes],
)
def test_simulated_call_matches_the_oracle(record, dtype):
    args = record.make_args(dtype)
    with wide_if(dtype), np.errstate(all="ignore"):
        found = simulate_program(record.call)(*args)
        shapes = jax.eval_shape(record.call, *args)
        assert_close(found, record.oracle(*args), record.tolerance_for(dtype))
    assert [x.dtype for x in tree.leaves(found)] == [x.dtype for x in tree.leaves(shapes)]


@pytest.mark.parametrize(
    ("operation", "x", "y"),
    [
        (lax.div, [7, -7, -7, 7], [0, 2, -2, -2]),
        (lax.rem, [7, -7, -7, 7], [0, 2, -2, -2]),
        (lax.shift_left, [1, 1, -1, 5], [31, 32, 40, 1]),
        (lax.shift_right_arithmetic, [-8, -8, 8, 8], [1, 33, 33, 1]),
        (lax.shift_right_logical, [-8, -8, 8, 8], [1, 33, 33, 1]),
        (lax.add, [2**31 - 1, -(2**31), 0, 1], [1, -1, 0, 2]),
    ],
)
def test_integers_at_their_edges_are_those_of_compiled_operations(operation, x, y):
    x, y = np.array(x, np.int32), np.array(y, np.int32)
    np.testing.assert_array_equal(simulate_program(operation)(x, y), operation(x, y))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int8])
def test_floats_out_of_range_become_the_same_integers(dtype):
    x = np.array([1e20, -1e20, np.nan, 300.7, -1.5, 2.9], np.float32)
    found = simulate_program(lambda v: lax.convert_element_type(v, dtype))(x)
    np.testing.assert_array_equal(found, lax.convert_element_type(x, dtype))


def test_operations_are_primitives():
    # Some primitives are declared only when their functions are asked for.
    assert all(hasattr(lax, name) for name in lax.__all__)
    assert set(numpy_model.OPERATIONS) - set(PRIMITIVES) <= {"name"}
