"""Parts of references, `ref.at[idx]`, wherever a reference may be passed."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.sharding import AxisType
from minijax.sharding import PartitionSpec as P


def mesh():
    return jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))


def double(ref):
    """Changes a reference, and returns what depends on what was there, and on what is."""
    before = ref[...]
    ref[...] = before * 2 + 1
    return (before + ref[...] * 10).sum()


def double_numpy(part):
    before = part.copy()
    return before * 2 + 1, before.sum() + (before * 2 + 1).sum() * 10


_ARRAY = np.arange(24, dtype=np.float32).reshape(4, 6)

# Each with the index of NumPy that takes the same elements.
_VIEWS = {
    "whole": (lambda r: r.at[...], np.index_exp[...]),
    "rows": (lambda r: r.at[1:3], np.index_exp[1:3]),
    "a row": (lambda r: r.at[2], np.index_exp[2]),
    "an element": (lambda r: r.at[2, -1], np.index_exp[2, -1]),
    "strided": (lambda r: r.at[::2, 1::3], np.index_exp[::2, 1::3]),
    "positions": (lambda r: r.at[jnp.array([3, 0])], np.index_exp[[3, 0]]),
    "a traced start": (lambda r: r.at[jax.ds(jnp.int32(1), 2)], np.index_exp[1:3]),
    "part of a part": (lambda r: r.at[1:].at[1:, 2], np.index_exp[2:, 2]),
    "nothing": (lambda r: r.at[4:], np.index_exp[4:]),
}


def _vmapped(ref):
    return jax.vmap(double)(ref).sum() if ref.ndim else double(ref)


def _scanned(ref):
    return lax.scan(lambda c, r: (c + double(r), None), 0.0, ref)[0] if ref.ndim else double(ref)


def _per_device(ref):
    spec = P("x") if ref.ndim and ref.shape[0] % 2 == 0 else P()
    total = "x" if spec == P("x") else ()
    f = jax.shard_map(
        lambda r: lax.psum(double(r), total), mesh=mesh(), in_specs=spec, out_specs=P()
    )
    return f(ref)


def _with_rules(ref):
    @jax.custom_vjp
    def f(x, ref):
        return double(ref) * x

    f.defvjp(lambda x, ref: (f(x, ref), None), lambda _, ct: (ct, None))
    return f(1.0, ref)


_PLACES = {
    "jit": jax.jit(double),
    "closed over by jit": lambda r: jax.jit(lambda: double(r))(),
    "jit of jit": jax.jit(jax.jit(double)),
    "checkpoint": jax.checkpoint(double),
    "cond": lambda r: lax.cond(r.ndim < 9, double, lambda r: 0.0, r),
    "switch": lambda r: lax.switch(1, [lambda r: 0.0, double], r),
    "closed over by cond": lambda r: lax.cond(True, lambda: double(r), lambda: 0.0),
    "closed over by scan": lambda r: lax.scan(lambda c, _: (double(r), 0), 0.0, None, length=1)[0],
    "closed over by while": lambda r: lax.while_loop(
        lambda c: c[0] < 1, lambda c: (c[0] + 1, double(r)), (0, 0.0)
    )[1],
    "fori_loop": lambda r: lax.fori_loop(0, 1, lambda i, c: double(r), 0.0),
    "scan": _scanned,
    "vmap": _vmapped,
    "shard_map": _per_device,
    "custom_vjp": _with_rules,
    "stages": lambda r: jax.jit(double).lower(r).compile()(r),
}

_AROUND = {"eager": lambda f: f, "jit": jax.jit}


@pytest.mark.feature("UX-06")
@pytest.mark.sampled(24)
@pytest.mark.parametrize("around", _AROUND)
@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("view", _VIEWS)
def test_part_of_a_reference_is_changed_in_place(view, place, around):
    if around == "jit" and place == "stages":
        around = "eager"  # A traced reference has no values that a compiled program could take.
    part, index = _VIEWS[view]
    expected = _ARRAY.copy()
    expected[index], total = double_numpy(_ARRAY[index])

    with jax.cpu_devices(2):
        ref = jax.new_ref(jnp.array(_ARRAY))
        out = _AROUND[around](lambda r: _PLACES[place](part(r)))(ref)

        np.testing.assert_array_equal(ref[...], expected)
        np.testing.assert_allclose(out, total)


@pytest.mark.feature("UX-06")
@pytest.mark.parametrize("place", ["jit", "shard_map", "cond", "scan"])
def test_part_of_a_reference_is_changed_operation_by_operation(place):
    expected = _ARRAY.copy()
    expected[1:3], total = double_numpy(_ARRAY[1:3])
    with jax.cpu_devices(2), jax.disable_jit():
        ref = jax.new_ref(jnp.array(_ARRAY))
        out = _PLACES[place](ref.at[1:3])

        np.testing.assert_array_equal(ref[...], expected)
        np.testing.assert_allclose(out, total)


@pytest.mark.feature("UX-06")
@pytest.mark.parametrize("around", _AROUND)
@pytest.mark.parametrize("place", ["jit", "checkpoint", "cond", "scan", "vmap", "shard_map"])
def test_gradient_goes_through_parts_of_references(place, around):
    def f(x):
        ref = jax.new_ref(x)
        return jnp.sin(_PLACES[place](ref.at[:2])) + (ref[...] ** 2).sum()

    def pure(x):
        new = x[:2] * 2 + 1
        return jnp.sin(x[:2].sum() + new.sum() * 10) + (new**2).sum() + (x[2:] ** 2).sum()

    x = jnp.array([0.1, 0.2, 0.3])
    with jax.cpu_devices(2):
        found = _AROUND[around](jax.grad(f))(x)
    np.testing.assert_allclose(found, jax.grad(pure)(x), rtol=1e-5)


def test_jvp_moves_part_of_a_tangent_along():
    ref, ref_dot = jax.new_ref(jnp.arange(3.0)), jax.new_ref(jnp.ones(3))

    out, out_dot = jax.jvp(jax.jit(double), (ref.at[1:],), (ref_dot.at[1:],))

    assert (float(out), float(out_dot)) == (83.0, 42.0)
    assert ref_dot[...].tolist() == [1.0, 2.0, 2.0]


def test_read_only_part_is_not_written_back():
    ref = jax.new_ref(jnp.arange(4.0))
    text = str(jax.make_jaxpr(lambda r: jax.jit(lambda v: v[...] + 1)(r.at[:2]))(ref))
    assert "a[:2]" in text
    assert "a[:2] <-" not in text
    # What is written would be batched.
    out = jax.vmap(lambda x: jax.jit(lambda v, x: v[0] * x)(ref.at[2:], x))(jnp.arange(3.0))
    assert out.tolist() == [0.0, 2.0, 4.0]


def test_part_has_the_type_of_its_elements():
    with jax.cpu_devices(2):
        explicit = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Explicit,))
        x = jax.device_put(jnp.ones((4, 2)), jax.NamedSharding(explicit, P(None, "x")))
        part = jax.new_ref(x).at[1:3]
        assert jax.typeof(part[...]).sharding.spec == P(None, "x")
        assert jax.typeof(part).sharding.spec == P(None, "x")
    keyed = jax.new_ref(jax.random.split(jax.random.key(0), 3)).at[0]
    assert (part.shape, part.dtype, part.ndim, part.size, len(part)) == ((2, 2), "float32", 2, 4, 2)
    assert keyed.dtype == jax.random.key(0).dtype
    assert isinstance(part, jax.Ref)


@pytest.mark.feature("UX-06")
@pytest.mark.parametrize(
    "passed",
    [
        lambda r: jax.jit(lambda a, b: a[...] + b[...])(r.at[:1], r.at[1:2]),
        lambda r: jax.jit(lambda a, b: a[...] + b[:1])(r.at[:1], r),
        lambda r: jax.jit(lambda a: a[...] + r[:1])(r.at[:1]),
        lambda r: lax.cond(True, lambda a, b: a[0], lambda a, b: b[0], r.at[:1], r.at[1:]),
    ],
    ids=["parts", "part and whole", "closed over", "cond"],
)
def test_parts_of_one_reference_are_passed_one_at_a_time(passed):
    with pytest.raises(ValueError, match="a reference may be passed only once"):
        passed(jax.new_ref(jnp.arange(3.0)))


@pytest.mark.parametrize(
    ("use", "kind", "match"),
    [
        (lambda r: jax.freeze(r.at[0]), ValueError, "a part of a reference cannot be frozen"),
        (lambda r: jax.jit(lambda v: v)(r.at[0]), ValueError, "the argument v of"),
        (lambda r: jax.jit(lambda r: r.at[0])(r), ValueError, "the argument r of"),
        (lambda r: np.asarray(r.at[:2]), TypeError, "a reference is no array"),
        (lambda r: list(r.at[:2]), TypeError, "a reference is no array"),
        (lambda r: jnp.sin(r.at[:2]), TypeError, "takes arrays, not references"),
        (lambda r: jax.jit(lambda: jnp.sin(r.at[:2]))(), TypeError, "takes arrays, not references"),
        (lambda r: jax.grad(double)(r.at[:2]), ValueError, "with respect to a reference"),
        (lambda r: (v := r.at[:2], jax.free_ref(r), jax.jit(double)(v)), ValueError, "was frozen"),
        (lambda r: jax.new_ref(r.at[:2]), TypeError, "cannot hold a reference"),
    ],
)
def test_part_of_a_reference_is_refused_where_references_are(use, kind, match):
    with pytest.raises(kind, match=match):
        use(jax.new_ref(jnp.arange(3.0)))


@pytest.mark.feature("UX-06")
def test_kind_of_a_reference_is_part_of_its_type():
    ref = jax.new_ref(jnp.arange(2.0), kind="weights")
    assert jax.typeof(ref).kind == jax.typeof(ref.at[0]).kind == "weights"
    assert jax.typeof(ref) is not jax.typeof(jax.new_ref(jnp.arange(2.0)))
    assert str(jax.typeof(ref)) == "Ref{float32[2]}"
    assert "new_ref[kind=weights" in str(
        jax.make_jaxpr(lambda x: jax.new_ref(x, kind="weights")[0])(ref[...])
    )

    jax.jit(double)(ref)
    jax.vmap(double)(ref)
    with jax.cpu_devices(2):
        f = jax.shard_map(double, mesh=mesh(), in_specs=P(), out_specs=P())
        f(ref)
    assert ref[...].tolist() == [7.0, 15.0]


def test_kinds_of_semaphores_are_taken():
    with pytest.raises(ValueError, match="the kind is that of semaphores"):
        jax.new_ref(1, kind="sem")


@pytest.mark.feature("UX-06")
def test_struct_stands_for_a_reference():
    struct = jax.ShapeDtypeStruct((2,), np.float32, is_ref=True)
    array = jax.ShapeDtypeStruct((2,), np.float32)

    assert repr(struct) == "ShapeDtypeStruct(shape=(2,), dtype=float32, is_ref=True)"
    assert struct != array == struct.update(is_ref=False)
    assert len({struct, array, array.update(is_ref=True)}) == 2
    assert str(jax.typeof(struct)) == "Ref{float32[2]}"
    assert jax.eval_shape(jax.vmap(double), struct) == array
    assert "a[...] <-" in str(jax.make_jaxpr(double)(struct))

    ref = jax.new_ref(jnp.arange(3.0))
    compiled = jax.jit(double).lower(struct).compile()
    assert float(compiled(ref.at[1:])) == 83.0
    assert ref[...].tolist() == [0.0, 3.0, 5.0]
    with pytest.raises(TypeError, match="types of arguments differ"):
        compiled(ref[1:])
