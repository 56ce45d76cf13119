"""The laws hold of the collectives, and each notices one that is wrong."""

import functools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax as jax
from minijax import lax
from minijax.sharding import PartitionSpec as P
from minijax.testing import given_mesh, laws, strategies

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
    skipped = law.check(data.draw(strategies.device_programs(modes=frozenset(modes), **options)))
    assert skipped in (None, "no argument is a float", "no result is a float")


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


def with_gradient(rule):
    """A sum over devices whose cotangents come from a rule of a cotangent and an axis."""

    @functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
    def total(x, axis_name):
        return lax.psum(x, axis_name)

    def forward(x, axis_name):
        return lax.psum(x, axis_name), None

    total.defvjp(forward, lambda axis_name, _, ct: (rule(ct, axis_name),))
    return total


def with_tangent(factor):
    """A sum over devices whose tangents are multiplied by a number."""

    @functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
    def total(x, axis_name):
        return lax.psum(x, axis_name)

    @total.defjvp
    def rule(axis_name, primals, tangents):
        return lax.psum(*primals, axis_name), lax.psum(*tangents, axis_name) * factor

    return total


def with_transpose(*, inverse):
    """A step around a ring whose transpose goes back, or on."""

    def step(x, axis_name):
        n = lax.axis_size(axis_name)
        there = [(i, (i + 1) % n) for i in range(n)]
        back = [(d, s) for s, d in there] if inverse else there
        return jax.custom_derivatives.linear_call(
            lambda _, x: lax.ppermute(x, axis_name, there),
            lambda _, ct: lax.ppermute(ct, axis_name, back),
            (),
            x,
        )

    return step


def program_with(collective, *, check_vma=True, size=4, dtype="float32"):
    """A program that squares and communicates; the result is cut, whatever it is."""

    def program(x):
        return collective(x * x, "x") * (1 + lax.axis_index("x"))

    x = strategies.array((2 * size,), dtype)
    return laws.program_of(program, {"x": size}, P("x"), P("x"), x, check_vma=check_vma)


# Where types do not tell what varies, a sum gives each device a copy with cotangents of its own.
RIGHT_GRADIENTS = {True: lax.pvary, False: lax.psum}
WRONG_GRADIENTS = {
    "twice too great": lambda ct, axis: lax.pvary(2 * ct, axis),
    "of the other sign": lambda ct, axis: lax.pvary(-ct, axis),
    "of one device": lambda ct, axis: lax.pvary(ct, axis) * (lax.axis_index(axis) == 0),
    "summed once more": lambda ct, axis: lax.pvary(lax.psum(lax.pvary(ct, axis), axis), axis),
    "nothing": lambda ct, axis: lax.pvary(ct * 0, axis),
    "of each copy": None,
}


@pytest.mark.feature("UX-08")
@pytest.mark.parametrize("law", [laws.gradients_are_slopes, laws.gradients_agree])
@pytest.mark.parametrize("check_vma", [True, False])
def test_gradient_of_a_right_custom_vjp_is_the_slope(check_vma, law):
    right = with_gradient(RIGHT_GRADIENTS[check_vma])
    assert law(program_with(right, check_vma=check_vma)) is None


@pytest.mark.feature("UX-08")
@pytest.mark.parametrize("law", [laws.gradients_are_slopes, laws.gradients_agree])
@pytest.mark.parametrize("name", WRONG_GRADIENTS)
def test_gradient_of_a_wrong_custom_vjp_is_not_the_slope(name, law):
    rule = WRONG_GRADIENTS[name]
    wrong = with_gradient(rule or (lambda ct, axis: ct))
    with pytest.raises(AssertionError, match="gradient of argument 0 is not the slope: by vjp"):
        law(program_with(wrong, check_vma=rule is not None))


@pytest.mark.feature("UX-08")
@pytest.mark.parametrize("law", [laws.gradients_are_slopes, laws.gradients_agree])
@pytest.mark.parametrize("right", [with_tangent(1), with_transpose(inverse=True)])
def test_gradients_of_right_rules_are_slopes(right, law):
    assert law(program_with(right)) is None


@pytest.mark.feature("UX-08")
@pytest.mark.parametrize("law", [laws.gradients_are_slopes, laws.gradients_agree])
@pytest.mark.parametrize("wrong", [with_tangent(2), with_transpose(inverse=False)])
def test_gradients_of_wrong_rules_are_not_slopes(wrong, law):
    with pytest.raises(AssertionError, match="is not the slope"):
        law(program_with(wrong))


@pytest.mark.feature("UX-08")
def test_wrong_transpose_is_not_adjoint():
    with pytest.raises(AssertionError, match="⟨u, J t⟩"):
        laws.derivatives_are_adjoint(program_with(with_transpose(inverse=False)))


@pytest.mark.feature("UX-08")
def test_forward_rule_that_computes_something_else_is_found():
    @jax.custom_vjp
    def total(x):
        return lax.psum(x, "x")

    total.defvjp(lambda x: (2 * lax.psum(x, "x"), None), lambda _, ct: (lax.pvary(ct, "x"),))
    with pytest.raises(AssertionError, match="the results by vjp and the results do not agree"):
        laws.gradients_are_slopes(program_with(lambda x, _: total(x)))


@pytest.mark.feature("UX-08")
def test_wrong_gradient_is_shown_beside_the_slopes_and_the_program():
    with pytest.raises(AssertionError) as caught:
        laws.gradients_are_slopes(program_with(with_gradient(WRONG_GRADIENTS["nothing"]), size=2))
    text = str(caught.value)
    assert re.search(r"by vjp\n\[( *-?0\.){4}\]\nby differences\n\[12\. ", text)
    assert text.endswith(
        "program on mesh {'x': 2}\nin_specs = (P('x'),)\nout_specs = P('x')\ninputs: float32[4]"
    )


@pytest.mark.feature("UX-08")
def test_collective_with_a_wrong_gradient_breaks_a_law():
    with pytest.raises(AssertionError, match="is not the slope"):
        laws.check_collectives({"x": 3}, psum=with_gradient(WRONG_GRADIENTS["of the other sign"]))


@pytest.mark.feature("UX-08")
def test_collective_with_a_right_gradient_passes_where_it_has_no_tangent():
    found = laws.check_collectives({"x": 3}, psum=with_gradient(lax.pvary), laws=[17])
    assert found == [
        "tangents_of_linear: skipped, custom_vjp of total has no forward-mode derivative",
        "gradients_of_linear",
    ]


NO_FORWARD_MODE = "skipped: custom_vjp of total has no forward-mode derivative"
NO_RULE = "skipped: pmax: the primitive has no rule for forward-mode differentiation (jvp)"
NO_FLOAT = "skipped: no argument is a float"
NO_REVERSE_MODE = "skipped: lax.while_loop has no reverse-mode derivative"


def doubled_until_great(x, axis):
    return lax.while_loop(lambda x: x.sum() < 9, lambda x: 2 * x + 1, x)


@pytest.mark.feature("UX-08")
@pytest.mark.parametrize(
    ("collective", "dtype", "adjoint", "forward", "reverse"),
    [
        (lax.psum, "float32", "holds", "holds", "holds"),
        (with_gradient(lax.pvary), "float32", NO_FORWARD_MODE, NO_FORWARD_MODE, "holds"),
        (lax.pmax, "float32", NO_RULE, NO_RULE, NO_RULE),
        (lax.psum, "int32", NO_FLOAT, NO_FLOAT, NO_FLOAT),
        (doubled_until_great, "float32", NO_REVERSE_MODE, "holds", NO_REVERSE_MODE),
    ],
    ids=["all", "custom_vjp", "pmax", "integers", "while_loop"],
)
def test_report_says_which_laws_were_skipped(collective, dtype, adjoint, forward, reverse):
    program = program_with(collective, dtype=dtype)
    found = laws.check_all(
        program.function,
        program.sizes,
        P("x"),
        P("x"),
        *program.inputs,
        laws=[15, 17],
        check_vma=True,
    )
    assert found == {
        "derivatives_are_adjoint": adjoint,
        "derivatives_are_slopes": forward,
        "gradients_are_slopes": reverse,
    }


@pytest.mark.feature("UX-08")
def test_failure_under_hypothesis_notes_what_was_skipped():
    @settings(max_examples=1, database=None, phases=["generate"])
    @given_mesh("x")
    def check(mesh):
        laws.derivatives_are_slopes(program_with(lax.psum, dtype="int32", size=mesh.size))
        raise AssertionError("of another law")

    with pytest.raises(AssertionError) as caught:
        check()
    assert "laws.derivatives_are_slopes skipped: no argument is a float" in caught.value.__notes__


@pytest.mark.feature("UX-08")
@pytest.mark.slow
def test_gradient_that_is_wrong_on_five_devices_is_found_there():
    def wrong_for_five(ct, axis):
        return lax.pvary(ct, axis) * (2 if lax.axis_size(axis) == 5 else 1)

    sizes = []

    @settings(max_examples=100, database=None, derandomize=True)
    @given_mesh("x", x=functools.partial(strategies.per_device_inputs, dtypes=["float32"]))
    def check(mesh, x):
        sizes.append(mesh.size)
        total = with_gradient(wrong_for_five)
        program = laws.program_of(lambda x: total(x, "x"), mesh, P("x"), P(), x, check_vma=True)
        laws.gradients_are_slopes(program)

    with pytest.raises(AssertionError, match="is not the slope"):
        check()
    assert sizes[-1] == 5


@pytest.mark.feature("UX-08")
def test_cases_have_from_one_to_eight_devices():
    sizes = set()

    @settings(max_examples=200, derandomize=True, database=None)
    @given(case=laws.cases())
    def collect(case):
        sizes.add(case.n)

    collect()
    assert sizes == set(range(1, 9))
