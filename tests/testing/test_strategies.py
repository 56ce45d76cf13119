"""`testing.strategies` draws what is well formed, and shrinks to what is small."""

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

import minijax as jax
from minijax import tree
from minijax.testing import programs, strategies
from minijax.testing.laws import types_are_sound

SIZES = st.integers(1, 8)
SMALL = settings(max_examples=400, database=None, derandomize=True)


@pytest.fixture(autouse=True)
def eight_devices():
    with jax.cpu_devices(8):
        yield


@given(data=st.data(), size=SIZES, equal=st.booleans())
def test_groups_hold_each_position_once(data, size, equal):
    groups = data.draw(strategies.axis_index_groups(size, equal=equal))
    assert sorted(i for group in groups for i in group) == list(range(size))


@given(data=st.data(), size=SIZES)
def test_equal_groups_are_of_one_size(data, size):
    groups = data.draw(strategies.axis_index_groups(size))
    assert len(set(map(len, groups))) == 1


@given(data=st.data(), size=SIZES)
def test_permutations_name_no_position_twice(data, size):
    pairs = data.draw(strategies.permutations(size))
    sources, destinations = zip(*pairs, strict=True)
    assert len(set(sources)) == len(set(destinations)) == len(pairs)


@given(data=st.data(), size=SIZES)
def test_ragged_blocks_lie_apart(data, size):
    found = data.draw(strategies.ragged_sizes(size))
    for receiver in range(size):
        filled = np.zeros(found.output_size, int)
        for sender in range(size):
            start = found.output_offsets[sender, receiver]
            filled[start : start + found.recv_sizes[receiver, sender]] += 1
        assert filled.max() <= 1


@given(data=st.data(), shape=strategies.shapes(), dtype=st.sampled_from(["float32", "bool"]))
def test_patterns_are_the_arrays_that_they_write_down(data, shape, dtype):
    text = strategies.pattern(shape, dtype, 7)
    np.testing.assert_array_equal(
        eval(text, {"np": np}), strategies.array(shape, dtype, 7), strict=False
    )


@given(aval=strategies.avals(weak=True))
def test_avals_are_types_of_arrays(aval):
    assert jax.eval_shape(lambda x: x, aval).shape == aval.shape


@given(found=strategies.trees(st.integers()))
def test_trees_have_few_leaves(found):
    assert len(tree.leaves(found)) <= 15


@given(data=st.data())
def test_blocks_have_a_dimension_for_each_axis(data):
    sizes = {"x": 2, "y": 3}
    blocks = data.draw(strategies.per_device_inputs(sizes, shape=(4,)))
    assert blocks.shape == (2, 3, 4)


@pytest.mark.feature("UX-08")
@given(data=st.data(), dtype=st.sampled_from(["float32", "int32", "float16", "int8", "uint8"]))
def test_values_of_blocks_show_their_device_and_their_place(data, dtype):
    blocks = data.draw(strategies.per_device_inputs({"x": 4, "y": 2}, shape=(2, 3), dtypes=[dtype]))
    assert blocks.dtype == dtype
    for device, block in enumerate(blocks.reshape(8, 6)):
        for place, value in enumerate(np.abs(block.astype(float)), 1):
            shown = device + place / 8 if dtype.startswith("float") else device * 10 + place
            assert value in (shown, shown + 100 * (dtype == "uint8"))


@pytest.mark.feature("UX-08")
@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("greatest", range(3))
def test_any_block_may_have_the_greatest_value(dtype, greatest):
    def is_greatest(x):
        values = x.real.astype(int)
        return (values[greatest] > np.delete(values, greatest, 0)).all()

    one_value = strategies.per_device_inputs({"x": 3}, shape=(1,), dtypes=[dtype])
    assert is_greatest(find(one_value, is_greatest, settings=SMALL))


@pytest.mark.feature("UX-08")
def test_blocks_shrink_to_plain_numbers():
    def has_negative_last_block(x):
        return x.ndim == 2 and (x[-1] < 0).any()

    found = find(strategies.per_device_inputs({"x": 3}), has_negative_last_block, settings=SMALL)
    np.testing.assert_array_equal(found, np.float32([[0.25, 0.5], [1.25, 1.5], [2.25, -2.5]]))


@given(data=st.data())
def test_blocks_that_are_cut_are_joined_again(data):
    mesh = data.draw(strategies.meshes(jax.devices()))
    x = np.arange(8 * 16).reshape(8, 16)
    spec = data.draw(strategies.partition_specs(mesh, x.shape))
    sizes = dict(mesh.shape)
    blocks = programs.cut(x, spec, sizes)
    missing = [i for i, name in enumerate(sizes) if name not in spec.names()]
    np.testing.assert_array_equal(programs.join(np.expand_dims(blocks, missing), spec, sizes), x)


@given(program=strategies.device_programs())
def test_programs_have_the_types_that_are_known_of_them(program):
    types_are_sound(program)


@pytest.mark.parametrize("mode", sorted(programs.BOTH))
@given(data=st.data())
@settings(SMALL, max_examples=10)
def test_programs_run_as_they_print(mode, data):
    program = data.draw(strategies.device_programs(modes=frozenset({mode})))
    names = {}
    exec(program.source, names)
    pasted = programs.DeviceProgram(
        names["program"],
        names["mesh"].shape,
        names["in_specs"],
        names["out_specs"],
        names["inputs"],
        modes=program.modes,
    )
    for found, expected in zip(
        programs.simulated(pasted), programs.simulated(program), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@given(program=strategies.device_programs(differentiable=True))
def test_differentiable_programs_have_no_extremes_over_devices(program):
    assert "pmax" not in program.source


@given(program=strategies.device_programs(modes=frozenset({"unchecked"})))
def test_unchecked_programs_have_no_sums_in_types(program):
    assert "unreduced" not in program.source


@pytest.mark.turns(3)
@pytest.mark.slow
def test_programs_shrink_to_the_operation_in_question():
    program = find(
        strategies.device_programs(), lambda p: "psum_scatter" in p.source, settings=SMALL
    )
    assert program.size == 1


@pytest.mark.turns(3)
@pytest.mark.slow
def test_programs_with_loops_shrink_to_a_loop_and_its_body():
    def has_collective_in_scan(program):
        return "lax.scan" in program.source and "        v" in program.source

    assert find(strategies.device_programs(), has_collective_in_scan, settings=SMALL).size <= 4
