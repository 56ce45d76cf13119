"""The laws hold of the collectives, and each notices one that is wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax as jax
from minijax import lax
from minijax.sharding import PartitionSpec as P
from minijax.testing import laws, strategies

OF_COLLECTIVES = [law for law in laws.LAWS if law.subject == "collectives"]
OF_PROGRAMS = [law for law in laws.LAWS if law.subject == "program" and law.number not in (18, 25)]
DIFFERENTIABLE = {"differentiable": True, "dtypes": ("float32", "int32")}


@pytest.fixture(autouse=True)
def eight_devices():
    with jax.cpu_devices(8):
        yield


def test_there_are_twenty_five_laws():
    assert sorted({law.number for law in laws.LAWS}) == list(range(1, 26))


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.name)
def test_laws_state_what_they_say(law):
    assert law.statement.endswith((".", ")"))


@pytest.mark.feature("AS-01", "AS-02", "AS-03", "AS-04", "AS-06", "CO-12", "CO-21", "CO-22")
@pytest.mark.slow
@pytest.mark.parametrize("law", OF_COLLECTIVES, ids=lambda law: law.name)
@given(case=laws.cases())
def test_law_holds_by_the_oracle(law, case):
    law.check(case)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["unchecked", "gspmd", "eager", "vmap", "pmap"])
def test_laws_hold_by_every_engine(engine):
    numbers = (1, 3, 6, 7, 8, 9, 10, 11, 24)
    assert laws.check_collectives({"x": 4}, engine=engine, dtype="float32", laws=numbers)


@pytest.mark.slow
@pytest.mark.parametrize("law", OF_COLLECTIVES, ids=lambda law: law.name)
@settings(max_examples=settings.default.max_examples // 12)
@given(case=laws.cases(engines=("checked",)))
def test_law_holds_by_xla(law, case):
    law.check(case)


@pytest.mark.feature("CO-28", "VT-02")
@pytest.mark.slow
@pytest.mark.parametrize("law", OF_PROGRAMS, ids=lambda law: law.name)
@pytest.mark.parametrize(
    "modes",
    [{"checked", "unchecked"}, {"checked"}, {"unchecked"}],
    ids=lambda modes: "-".join(sorted(modes)),
)
@given(data=st.data())
def test_law_holds_of_programs(law, modes, data):
    options = DIFFERENTIABLE if law.number in (15, 17) else {}
    law.check(data.draw(strategies.device_programs(modes=frozenset(modes), **options)))


@pytest.mark.feature("BT-03", "CO-29")
@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 3)
@given(program=strategies.device_programs())
def test_executions_agree(program):
    laws.executions_agree(program, ("vmap", "pmap", "eager", "eager_pmap"))


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 12)
@given(case=laws.cases())
def test_lowerings_of_collectives_agree(case):
    for program in laws.programs_of(case):
        laws.lowerings_agree(program)


@pytest.mark.feature("AD-05")
@pytest.mark.slow
@pytest.mark.parametrize("devices", [1, 2, 4, 8])
@settings(max_examples=settings.default.max_examples // 5)
@given(data=st.data())
def test_gradients_of_sharded_programs_are_those_of_unsharded_ones(devices, data):
    program = data.draw(strategies.device_programs(sizes={"x": devices}, **DIFFERENTIABLE))
    laws.gradients_agree(program)


@pytest.mark.feature("CO-01")
def test_psum_of_bool_counts_even_one_device():
    f = jax.shard_map(
        lambda x: lax.psum(x, "x"), mesh=jax.make_mesh((1,), ("x",)), in_specs=P(), out_specs=P()
    )
    assert f(np.array([True, False])).dtype == np.int32


def test_all_laws_can_be_tried_on_a_function():
    def layer(x, w):
        return lax.psum(lax.tanh(x @ w), "x")

    x, w = strategies.array((3, 8), "float32"), strategies.array((8, 2), "float32")
    laws.check_all(layer, {"x": 4}, (P(None, "x"), P("x")), P(), x, w, laws=(15, 17, 19, 20))


def test_gradients_can_be_compared_with_a_function_of_whole_arrays():
    def layer(x, w):
        return lax.psum(x @ w, "x")

    x, w = strategies.array((3, 8), "float32"), strategies.array((8, 2), "float32")
    program = laws.program_of(layer, {"x": 4}, (P(None, "x"), P("x")), P(), x, w)
    laws.gradients_agree(program, lambda x, w: x @ w)


WRONG = {
    "psum": lambda x, axes, **o: lax.psum(x, axes, **o) + x * 0 + 1,
    "pmax": lambda x, axes, **o: lax.pmin(x, axes, **o),
    "pmin": lambda x, axes, **o: lax.pmin(x, axes, **o) - 1,
    "all_gather": lambda x, axes, **o: lax.rev(lax.all_gather(x, axes, **o), (o.get("axis", 0),)),
    "psum_scatter": lambda x, axes, **o: lax.psum_scatter(x, axes, **o) * 2,
    "all_to_all": lambda x, axes, s, c, **o: -lax.all_to_all(x, axes, s, c, **o),
    "pmean": lambda x, axes, **o: lax.psum(x, axes, **o),
    "axis_index": lambda axes: lax.axis_index(axes) * 0,
    "pargmax": lambda x, axis: lax.pargmin(x, axis),
    "pswapaxes": lambda x, axes, d, **o: lax.rev(lax.pswapaxes(x, axes, d, **o), (d,)),
    "pbroadcast": lambda x, axes, source: lax.pbroadcast(x, axes, 0),
    "pshuffle": lambda x, axes, perm: lax.pshuffle(x, axes, perm[::-1]),
    "ppermute": lambda x, axes, perm: lax.ppermute(x, axes, [(d, s) for s, d in perm]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_collective_breaks_a_law(name):
    with pytest.raises(AssertionError, match="do not agree"):
        laws.check_collectives({"x": 3, "y": 2}, ("y", "x"), **{name: WRONG[name]})


def test_law_shows_the_program_that_breaks_it():
    def wrong(x):
        return lax.stop_gradient(x) * x

    x = np.float32([1, 2])
    with pytest.raises(AssertionError, match="wrong on mesh"):
        laws.check_all(wrong, {"x": 2}, P("x"), P("x"), x, laws=[17])
