"""References: eager use, jaxprs, jit, derivatives, batches, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.check import check_jaxpr
from minijax.core.refs import AbstractRef, AccumEffect, ReadEffect, WriteEffect


def make(*values):
    return jax.new_ref(jnp.array(values))


@pytest.mark.feature("ST-01")
def test_ref_is_read_and_written_by_numpys_rules():
    ref = make(1.0, 2.0, 3.0)
    ref[0] += 3.0
    ref[1:] = ref[:2]
    assert ref[...].tolist() == [4.0, 4.0, 2.0]


def test_ref_swap_returns_what_was_there():
    ref = make(1.0, 2.0, 3.0)
    assert float(jax.ref.swap(ref, 1, 9.0)) == 2.0
    assert ref[...].tolist() == [1.0, 9.0, 3.0]


def test_ref_addupdate_adds_once_for_each_occurrence():
    ref = make(0.0, 0.0)
    jax.ref.addupdate(ref, jnp.array([1, 1]), jnp.array([2.0, 3.0]))
    assert ref[...].tolist() == [0.0, 5.0]


def test_ref_has_the_facts_of_its_value():
    ref = jax.new_ref(jnp.zeros((2, 3), jnp.int8))
    assert (ref.shape, ref.dtype, ref.ndim, ref.size, len(ref)) == ((2, 3), np.int8, 2, 6, 2)
    assert repr(make(1.0)) == "Ref([1.], dtype=float32)"


def test_value_read_does_not_change_with_the_ref():
    ref = make(1.0, 2.0)
    before = ref[...]
    ref[...] = jnp.zeros(2)
    assert before.tolist() == [1.0, 2.0]


def test_empty_ref_has_the_type_asked_for():
    assert jax.empty_ref(jax.ShapeDtypeStruct((2,), jnp.int32))[...].aval.str_short() == "i32[2]"


def test_free_ref_ends_the_life_of_a_ref():
    ref = make(1.0)
    jax.free_ref(ref)
    with pytest.raises(ValueError, match="was frozen"):
        ref[...]


def test_random_keys_can_be_held():
    ref = jax.new_ref(jax.random.key(0))
    assert ref[...].dtype == ref.dtype


@pytest.mark.feature("CR-05")
def test_ref_aval_is_interned_and_printable():
    ref = make(1.0, 2.0)
    assert jax.typeof(ref) is AbstractRef(ref[...].aval)
    assert str(jax.typeof(ref)) == "Ref{float32[2]}"


@pytest.mark.feature("CR-05")
def test_traced_refs_are_refs_and_no_arrays():
    kinds = []
    jax.make_jaxpr(lambda r: kinds.append((isinstance(r, jax.Ref), isinstance(r, jax.Array))))(
        make(1.0)
    )
    assert kinds == [(True, False)]
    assert isinstance(make(1.0), jax.Ref)


@pytest.mark.feature("ST-01")
def test_jaxpr_of_references_reads_like_assignments():
    def f(x):
        ref = jax.new_ref(x)
        ref[0] = 1.0
        ref[1:3] += 2.0
        jax.ref.addupdate(ref, slice(0, 2), x[:2])
        old = jax.ref.swap(ref, -1, x[1])
        ref[jax.ref.ds(x[0].astype(int), 2)]
        return old, ref[::2], jax.freeze(ref)

    text = str(jax.make_jaxpr(f)(jnp.arange(5.0)))
    lines = [line.strip() for line in text.splitlines()]
    assert "b:Ref{f32[5]} = new_ref[kind=None memory_space=None] a" in lines
    assert "b[0] <- 1.0:f32[]" in lines
    assert "c:f32[2] <- b[1:3]" in lines
    assert "b[1:3] <- d" in lines
    assert "b[:2] += e" in lines
    assert "h:f32[], b[-1] <- b[-1], g" in lines
    assert any(line.endswith(":f32[2] <- b[k:k+2]") for line in lines)
    assert any(line.endswith(":f32[3] <- b[::2]") for line in lines)
    assert lines[-2].endswith(" = freeze b")


@pytest.mark.feature("ST-01")
def test_effects_tell_which_reference_is_touched():
    def f(a, b, c):
        a[...] = b[...]
        jax.jit(lambda: jax.ref.addupdate(c, ..., b[...]))()

    closed = jax.make_jaxpr(f)(make(1.0), make(2.0), make(3.0))
    a, b, c = closed.jaxpr.invars
    assert closed.effects == {WriteEffect(a), ReadEffect(b), AccumEffect(c)}
    assert "WriteEffect(Var(Ref{f32[1]}))" in repr(closed.effects)


def test_effects_end_where_the_reference_is_made():
    closed = jax.make_jaxpr(lambda x: jax.freeze(jax.new_ref(x)))(1.0)
    assert closed.effects == frozenset()
    check_jaxpr(closed)


@pytest.mark.feature("ST-01", "ST-03")
def test_jit_writes_references_passed_and_closed_over():
    first, second = make(1.0, 2.0), make(3.0, 4.0)

    @jax.jit
    def f(ref, x):
        ref[0] = x
        second[...] = second[...] + ref[...]
        return ref[1]

    results = [float(f(first, x)) for x in (5.0, 6.0)]
    assert results == [2.0, 2.0]
    assert first[...].tolist() == [6.0, 2.0]
    assert second[...].tolist() == [14.0, 8.0]


def test_jit_stages_once_for_many_references():
    traces = []

    @jax.jit
    def f(ref):
        traces.append(1)
        ref[0] = 7.0

    refs = [make(1.0), make(2.0)]
    for ref in refs:
        f(ref)
    assert [float(ref[0]) for ref in refs] == [7.0, 7.0]
    assert len(traces) == 1


def test_jit_drops_no_write_of_an_inner_call():
    ref = make(1.0)

    def write():
        ref[0] = ref[0] + 1.0
        return ref[0]

    jax.jit(lambda x: (jax.jit(jax.jit(write))(), x)[1])(1.0)
    assert float(ref[0]) == 2.0


def test_compiled_functions_write_references():
    ref, other = make(1.0), make(2.0)

    def f(ref, x):
        ref[0] = x
        other[0] = ref[0] + 1.0
        return x * 2.0

    compiled = jax.jit(f).lower(ref, 3.0).compile()
    assert float(compiled(ref, 5.0)) == 10.0
    assert [float(ref[0]), float(other[0])] == [5.0, 6.0]


def test_unused_reference_is_no_argument_of_the_program():
    ref = make(1.0)
    assert float(jax.jit(lambda r, x: x + 1.0)(ref, 1.0)) == 2.0


@pytest.mark.feature("ST-03")
def test_lowered_program_holds_no_reference():
    text = jax.jit(lambda x: jax.freeze(jax.new_ref(x))).lower(1.0).as_text()
    assert "return %arg0" in text


def test_disable_jit_mutates_too():
    ref = make(1.0)
    with jax.disable_jit():
        jax.jit(lambda: ref.__setitem__(0, 4.0))()
    assert float(ref[0]) == 4.0


def test_jvp_moves_the_tangent_reference_along():
    ref, ref_dot = make(0.0, 1.0, 2.0), make(1.0, 1.0, 1.0)

    def f(ref, x):
        ref[0] = x
        ref[...] = ref[...] * 2.0
        return ref[...]

    out, out_dot = jax.jvp(f, (ref, 2.0), (ref_dot, 10.0))
    assert (out.tolist(), out_dot.tolist()) == ([4.0, 2.0, 4.0], [20.0, 2.0, 2.0])
    assert ref_dot[...].tolist() == [20.0, 2.0, 2.0]


def mutating(x):
    ref = jax.new_ref(jnp.zeros((2, 3)))
    ref[jnp.array([0, 1]), jnp.array([2, 1])] = x[:2]
    ref[:, ::2] = ref[:, ::2] * x[2]
    jax.ref.addupdate(ref, (jnp.array([0, 0]),), jnp.stack([x, x]))
    ref[jax.ref.ds(0, 1), 1:] = ref[1:2, :2] * x[0]
    return jnp.sin(ref[...]).sum()


def updating(x):
    a = jnp.zeros((2, 3))
    a = a.at[jnp.array([0, 1]), jnp.array([2, 1])].set(x[:2])
    a = a.at[:, ::2].set(a[:, ::2] * x[2])
    a = a.at[jnp.array([0, 0])].add(jnp.stack([x, x]))
    a = a.at[0:1, 1:].set(a[1:2, :2] * x[0])
    return jnp.sin(a).sum()


_X = np.array([0.3, 0.5, 0.7], np.float32)

_TRANSFORMATIONS = {
    "jit": jax.jit,
    "grad": jax.grad,
    "grad of jit": lambda f: jax.grad(jax.jit(f)),
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "grad of checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
    "jacfwd of jit": lambda f: jax.jacfwd(jax.jit(f)),
    "hessian of jit": lambda f: jax.hessian(jax.jit(f)),
    "grad of grad": lambda f: jax.grad(lambda x: jax.grad(f)(x).sum()),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x * 2,)),
    "jvp of grad": lambda f: lambda x: jax.jvp(jax.grad(f), (x,), (x * 2,)),
    "grad of jvp": lambda f: jax.grad(lambda x: jax.jvp(f, (x,), (x,))[1]),
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](x),
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, 2 * x])),
    "vmap of grad": lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, 2 * x])),
    "grad of vmap": lambda f: jax.grad(lambda x: jax.vmap(f)(jnp.stack([x, 2 * x])).sum()),
    "vmap of jit": lambda f: lambda x: jax.vmap(jax.jit(f))(jnp.stack([x, 2 * x])),
}


@pytest.mark.feature("ST-01", "ST-03")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name.startswith(("grad", "hess")) else ())
        for name in _TRANSFORMATIONS
    ],
)
def test_transformation_of_mutation_is_that_of_updates(name):
    transform = _TRANSFORMATIONS[name]
    actual, expected = transform(mutating)(_X), transform(updating)(_X)
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)


def test_linear_transpose_runs_through_references():
    def f(x):
        ref = jax.new_ref(x)
        ref[0] = 2.0 * x[1]
        return ref[...]

    (ct,) = jax.linear_transpose(f, jnp.zeros(2))(jnp.array([1.0, 10.0]))
    assert ct.tolist() == [0.0, 12.0]


@pytest.mark.parametrize("axis", [0, 1])
def test_vmap_maps_references_over_any_axis(axis):
    ref = jax.new_ref(jnp.arange(6.0).reshape(2, 3))
    expected = np.arange(6.0).reshape(2, 3)
    inner = jax.jit(lambda r: r.__setitem__(0, r[1] * 2.0))
    jax.vmap(inner, in_axes=axis)(ref)
    np.moveaxis(expected, axis, 0)[:, 0] = 2 * np.moveaxis(expected, axis, 0)[:, 1]
    np.testing.assert_array_equal(ref[...], expected)


def test_vmap_of_batched_positions_writes_each_example():
    def f(i, value):
        ref = jax.new_ref(jnp.arange(12.0).reshape(3, 4))
        old = jax.ref.swap(ref, (i, jax.ref.ds(i, 2)), value)
        jax.ref.addupdate(ref, (jnp.stack([i, i]), slice(None)), jnp.ones((2, 4)))
        return old, ref[...]

    values = jnp.arange(6.0).reshape(3, 2)
    together = jax.vmap(f)(jnp.arange(3), values)
    alone = [f(i, values[i]) for i in range(3)]
    for whole, parts in zip(together, zip(*alone, strict=True), strict=True):
        np.testing.assert_array_equal(whole, np.stack(parts))


_INDICES = (
    ...,
    (0,),
    (-1, slice(1, 3)),
    (slice(None), 2),
    (slice(None, None, 2), slice(1, None, 2)),
    (np.array([2, 0]),),
    (np.array([0, 1]), np.array([3, 3])),
    (slice(0, 2), np.array([[0], [1]])),
)

_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["set", "add", "addupdate", "swap", "get"]),
        st.integers(0, len(_INDICES) - 1),
        st.integers(-3, 3),
    ),
    max_size=6,
)


def mutate(ref, steps, get, put, add):
    """Runs a random program; `total` depends on everything that it reads."""
    total = 0
    for kind, number, value in steps:
        idx = _INDICES[number]
        if kind in ("get", "swap"):
            total = total + get(ref, idx).sum()
        values = value + get(ref, idx) * 0
        if kind in ("set", "swap"):
            put(ref, idx, values)
        elif kind == "add":
            put(ref, idx, get(ref, idx) + values)
        elif kind == "addupdate":
            add(ref, idx, values)
    return total


def mutate_ref(ref, steps):
    return mutate(ref, steps, jax.ref.get, jax.ref.set, jax.ref.addupdate)


def mutate_numpy(array, steps):
    def get(a, idx):
        return a[idx].copy()

    return mutate(array, steps, get, lambda a, i, v: a.__setitem__(i, v), np.add.at)


@pytest.mark.slow
@pytest.mark.feature("ST-01", "ST-03")
@given(_STEPS)
def test_random_program_means_the_same_as_in_numpy(steps):
    start = np.arange(12, dtype=np.int32).reshape(3, 4)
    expected = start.copy()
    totals = [mutate_numpy(expected, steps) for _ in range(2)]

    eager = jax.new_ref(start)
    assert [int(mutate_ref(eager, steps)) for _ in range(2)] == totals
    np.testing.assert_array_equal(eager[...], expected)

    jitted = jax.new_ref(start)
    step = jax.jit(lambda ref: mutate_ref(ref, steps))
    assert [int(step(jitted)) for _ in range(2)] == totals
    np.testing.assert_array_equal(jitted[...], expected)

    scanned = jax.new_ref(start)
    _, ys = lax.scan(lambda c, _: (c, jnp.int32(mutate_ref(scanned, steps))), 0, None, length=2)
    assert ys.tolist() == totals
    np.testing.assert_array_equal(scanned[...], expected)


@pytest.mark.feature("ST-10")
def test_returning_a_reference_names_where_it_was_made():
    def escape(x):
        made = jax.new_ref(x)
        return {"value": x, "ref": made}

    with pytest.raises(ValueError, match="cannot be returned") as caught:
        jax.jit(escape)(1.0)
    text = str(caught.value)
    assert "result['ref']: Ref{float32[]}, computed by new_ref at test_references.py" in text
    assert "freeze(ref)" in text


@pytest.mark.feature("ST-10")
def test_returning_an_argument_names_it():
    with pytest.raises(ValueError, match="the argument r of"):
        jax.jit(lambda r: r)(make(1.0))


@pytest.mark.feature("ST-10")
@pytest.mark.parametrize(
    "leak",
    [
        lambda ref: jax.jit(lambda: ref)(),
        lambda ref: jax.make_jaxpr(lambda x: jax.new_ref(x))(1.0),
        lambda ref: lax.scan(lambda c, _: (c, jax.new_ref(c)), 1.0, None, length=2),
        lambda ref: lax.scan(lambda c, _: (c, None), ref, None, length=2),
        lambda ref: lax.cond(True, lambda: ref, lambda: ref),
        lambda ref: lax.while_loop(lambda r: True, lambda r: r, ref),
        lambda ref: lax.fori_loop(0, 3, lambda i, r: r, ref),
        lambda ref: jax.ref.run_state(lambda r: r)(1.0),
    ],
    ids=["jit", "make_jaxpr", "scan ys", "scan carry", "cond", "while", "fori", "run_state"],
)
def test_references_do_not_escape(leak):
    with pytest.raises(ValueError, match=r"cannot be returned|must return None"):
        leak(make(1.0))


@pytest.mark.feature("ST-10")
def test_one_reference_under_two_names_is_refused():
    ref = make(1.0)
    with pytest.raises(ValueError, match="both the argument a and the argument b"):
        jax.jit(lambda a, b: a[0] + b[0])(ref, ref)
    with pytest.raises(ValueError, match="the argument a, and the function closes over it"):
        jax.jit(lambda a: a[0] + ref[0])(ref)


def test_frozen_reference_is_dead_inside_traces():
    def f(x):
        ref = jax.new_ref(x)
        y = jax.freeze(ref)
        ref[...] = 2.0
        return y

    with pytest.raises(ValueError, match=r"was frozen(.|\n)*test_references.py"):
        jax.jit(f)(1.0)


def test_reference_from_outside_cannot_be_frozen():
    with pytest.raises(ValueError, match="can freeze only references that it makes"):
        jax.jit(jax.freeze)(make(1.0))


@pytest.mark.parametrize("use", [jnp.sin, lax.sin, lambda r: lax.add(r, r)])
def test_reference_is_no_array(use):
    with pytest.raises(TypeError, match=r"takes arrays, not references(.|\n)*ref\[\.\.\.\]"):
        jax.jit(use)(make(1.0))
    with pytest.raises(TypeError, match="not references"):
        use(make(1.0))


def test_numpy_and_iteration_do_not_read_references():
    with pytest.raises(TypeError, match="a reference is no array"):
        np.asarray(make(1.0))
    with pytest.raises(TypeError, match="a reference is no array"):
        iter(make(1.0))


def test_reference_to_a_reference_is_refused():
    with pytest.raises(TypeError, match="cannot hold a reference"):
        jax.new_ref(make(1.0))


@pytest.mark.parametrize(
    "write",
    [
        lambda ref, x: ref.__setitem__(0, x),
        lambda ref, x: jax.ref.addupdate(ref, 0, x),
        lambda ref, x: jax.jit(lambda y: ref.__setitem__(0, y))(x),
    ],
    ids=["set", "addupdate", "jit"],
)
def test_foreign_references_take_no_batched_and_no_differentiated_values(write):
    ref = make(1.0, 2.0)
    with pytest.raises(ValueError, match="a vmapped value cannot be"):
        jax.vmap(lambda x: write(ref, x))(jnp.arange(2.0))
    with pytest.raises(ValueError, match="a differentiated value cannot be"):
        jax.grad(lambda x: (write(ref, x), x)[1])(1.0)
    assert ref[...].tolist() == [1.0, 2.0]


def test_foreign_references_are_read_under_vmap_and_grad():
    ref = make(1.0, 2.0)
    assert jax.vmap(lambda i: ref[i])(jnp.arange(2)).tolist() == [1.0, 2.0]
    assert jax.grad(lambda x: (x * ref[...]).sum())(jnp.zeros(2)).tolist() == [1.0, 2.0]


def test_grad_with_respect_to_a_reference_is_refused():
    with pytest.raises(ValueError, match="cannot differentiate with respect to a reference"):
        jax.grad(lambda r: r[0])(make(1.0))


def test_functions_with_custom_rules_close_over_no_references():
    ref = make(2.0)
    f = jax.custom_jvp(lambda x: x * ref[0])
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    with pytest.raises(TypeError, match="custom_jvp_call: the operation takes arrays"):
        jax.jit(f)(1.0)


def _writes_and_reads(a, b):
    a[...] = b[...] + 1
    return b[...]


@pytest.mark.feature("ST-10")
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("called", "names"),
    [
        (lambda r: lax.cond(True, _writes_and_reads, _writes_and_reads, r, r), r"operands\[1\]"),
        (lambda r: lax.cond(True, lambda a: a[...] + r[...], lambda a: a[...], r), "closes over"),
        (lambda r: lax.scan(lambda c, x: (c + x[...] + r[0], None), 0.0, r), "closes over"),
        (lambda r: lax.scan(lambda c, x: (_writes_and_reads(*x), None), 0.0, (r, r)), r"xs\[1\]"),
    ],
    ids=["cond twice", "cond closure", "scan closure", "scan twice"],
)
def test_control_flow_refuses_a_reference_under_two_names(called, names, wrap):
    with pytest.raises(ValueError, match=f"only once.*{names}"):
        wrap(lambda x: called(jax.new_ref(x)))(jnp.ones(3))


@pytest.mark.feature("ST-01")
@pytest.mark.parametrize(
    ("dtype", "value"), [("int8", 3), ("uint8", 3), ("bfloat16", 3.0), ("float16", 3.0)]
)
def test_python_scalar_is_written_in_the_dtype_of_the_reference(dtype, value):
    ref = jax.new_ref(jnp.zeros(2, dtype))
    ref[0] = value
    jax.ref.addupdate(ref, 1, value)
    assert ref.dtype == dtype
    assert ref[...].tolist() == [3, 3]


def test_python_scalar_of_another_kind_is_not_written():
    with pytest.raises(ValueError, match="another dtype"):
        jax.new_ref(jnp.zeros(2, "int8"))[0] = 1.5
