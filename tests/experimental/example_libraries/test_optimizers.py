"""Optimizers make the steps of JAX's, as recorded; their states are trees."""

from __future__ import annotations

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.example_libraries import optimizers
from tests.experimental.example_libraries import recorded, samples

pytestmark = pytest.mark.feature("EX-12")


@pytest.mark.parametrize("name", samples.STEPS)
def test_steps_equal_those_of_jax(name: str) -> None:
    recorded.check("steps", name, rtol=2e-5, atol=1e-6)


def test_every_name_of_jax_is_there() -> None:
    names = recorded.FIGURES["names"]["optimizers"]

    assert not [name for name in names if not hasattr(optimizers, name)]


def test_gradients_of_another_tree_are_refused() -> None:
    init, update, _ = optimizers.sgd(0.1)

    with pytest.raises(TypeError, match="gradients form another tree than the parameters"):
        update(0, {"v": 1.0}, init({"w": 1.0}))


def test_update_that_changes_the_form_of_its_state_is_refused() -> None:
    @optimizers.optimizer
    def growing():
        return lambda x: (x,), lambda i, g, state: (*state, g), lambda state: state[0]

    init, update, _ = growing()

    with pytest.raises(TypeError, match="a state of another form than it was given"):
        update(0, 1.0, init(1.0))


def test_states_are_trees_and_survive_packing() -> None:
    init, update, get_params = optimizers.adam(0.1)
    params = {"a": jnp.ones(2), "b": [jnp.zeros(3)]}
    state = jax.jit(update)(0, params, init(params))

    points = optimizers.unpack_optimizer_state(state)
    packed = optimizers.pack_optimizer_state(points)

    assert jax.tree.structure(points) == jax.tree.structure(params)
    assert jax.tree.structure(packed) == jax.tree.structure(state)
    for a, b in zip(jax.tree.leaves(packed), jax.tree.leaves(state), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(get_params(packed)["a"], get_params(state)["a"])


def test_packing_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match=r"have to be JoinPoints\.[\s\S]*unpack_optimizer_state"):
        optimizers.pack_optimizer_state({"w": 1.0})


@pytest.mark.parametrize("schedule", ["0.1", [0.1, 0.2], np.ones(2), None])
def test_what_is_no_schedule_is_refused(schedule: object) -> None:
    with pytest.raises(TypeError, match="is a number, or a function from the number of the step"):
        optimizers.sgd(schedule)


def test_boundaries_have_to_fit_values() -> None:
    with pytest.raises(ValueError, match=r"one value more[\s\S]*boundaries: \(2,\)"):
        optimizers.piecewise_constant([1, 2], [0.1, 0.2])


def test_schedules_count_under_jit() -> None:
    schedule = optimizers.piecewise_constant([10, 20], [1.0, 0.5, 0.25])

    found = jax.jit(jax.vmap(schedule))(jnp.array([0, 10, 11, 20, 21, 1000]))

    np.testing.assert_array_equal(found, [1.0, 1.0, 0.5, 0.5, 0.25, 0.25])
