"""What `shard_map` refuses, and what it says."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax.core.errors import DuplicateSpecError
from minijax.experimental import io_callback
from minijax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

X = np.arange(64, dtype=np.float32).reshape(8, 8)


@pytest.fixture(scope="module")
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield minijax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


@pytest.fixture(scope="module")
def row(mesh: Mesh) -> Mesh:
    return minijax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))


def same(a: Any) -> Any:
    return a


Case = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], type[Exception], list[str]]
SPEC_CASES: dict[str, Case] = {
    "tree": (
        same,
        (X,),
        {"in_specs": (P(), P())},
        ValueError,
        ["in_specs is not a tree prefix of the arguments", "length 2", "length 1"],
    ),
    "out_tree": (
        same,
        (X,),
        {"out_specs": (P(), P())},
        ValueError,
        ["out_specs is not a tree prefix of the results"],
    ),
    "no_spec": (
        same,
        (X,),
        {"in_specs": ("x",)},
        TypeError,
        ["in_specs must be a PartitionSpec", "'x' of type str"],
    ),
    "no_out_spec": (
        same,
        (X,),
        {"out_specs": "x"},
        TypeError,
        ["out_specs must be a PartitionSpec"],
    ),
    "in_rank": (
        same,
        (X[0],),
        {"in_specs": P("x", "y")},
        ValueError,
        ["in_specs has 2 entries for the argument a of same", "f32[8]", "at most 1"],
    ),
    "in_rank_in_a_tree": (
        lambda d: d,
        ({"w": [X[0]]},),
        {"in_specs": P("x", "y")},
        ValueError,
        ["the argument d['w'][0]"],
    ),
    "rank_of_a_scalar": (same, (1.0,), {"in_specs": P("x")}, ValueError, ["P() for a scalar"]),
    "out_rank": (
        lambda a: {"s": jnp.sum(a)},
        (X,),
        {"out_specs": P("x")},
        ValueError,
        ["out_specs has 1 entries for result['s']", "P() for a scalar"],
    ),
    "unknown_axis": (
        same,
        (X,),
        {"in_specs": P("z")},
        ValueError,
        ["in_specs names 'z', which the mesh does not have", "axes among 'x', 'y'"],
    ),
    "axis_left_to_the_compiler": (
        same,
        (X,),
        {"in_specs": P("y"), "axis_names": {"x"}},
        ValueError,
        ["in_specs names 'y', which the function is not written", "axes among 'x'", "axis_names"],
    ),
    "out_axis_left_to_the_compiler": (
        same,
        (X,),
        {"in_specs": P("x"), "out_specs": P("y"), "axis_names": {"x"}},
        ValueError,
        ["out_specs names 'y'"],
    ),
    "axis_names": (
        same,
        (X,),
        {"axis_names": {"z"}},
        ValueError,
        ["axis_names names no axis of the mesh: 'z'"],
    ),
    "axis_twice": (
        same,
        (X,),
        {"in_specs": P("x", "x")},
        DuplicateSpecError,
        ["in_specs names 'x' twice"],
    ),
    "unconstrained": (
        same,
        (X,),
        {"in_specs": P(P.UNCONSTRAINED)},
        ValueError,
        ["in_specs must say for each dimension"],
    ),
    "indivisible": (
        same,
        (X[:6],),
        {},
        ValueError,
        ["dimension 0 of the argument a of same has size 6", "4 devices", "'x' of size 4"],
    ),
    "indivisible_by_product": (
        same,
        (X[:4],),
        {"in_specs": P(("x", "y"))},
        ValueError,
        ["has size 4, which 8 devices cannot share", "'x' of size 4, 'y' of size 2"],
    ),
    "may_differ": (
        same,
        (X,),
        {"out_specs": P(None, "y")},
        ValueError,
        ["result of same may differ between devices along 'x'", "P(None, 'y')", "check_vma=False"],
    ),
    "mesh": (same, (X,), {"mesh": 3}, TypeError, ["mesh must be a Mesh", "3 of type int"]),
    "array": (
        same,
        ("abc",),
        {"in_specs": P()},
        TypeError,
        ["the argument a is neither an array nor a number"],
    ),
}


@pytest.mark.feature("SM-04", "SM-05")
@pytest.mark.parametrize("name", SPEC_CASES)
def test_shard_map_refuses(name: str, mesh: Mesh) -> None:
    function, args, changes, error, texts = SPEC_CASES[name]
    options = {"mesh": mesh, "in_specs": P("x", "y"), "out_specs": P("x", "y"), **changes}
    with pytest.raises(error) as caught:
        minijax.shard_map(function, **options)(*args)
    assert str(caught.value).startswith("shard_map: ")
    assert [text for text in texts if text not in str(caught.value)] == []


@pytest.mark.feature("SM-04")
def test_shard_map_needs_a_function(mesh: Mesh) -> None:
    with pytest.raises(TypeError, match="shard_map: expected a function"):
        minijax.shard_map(3, mesh=mesh, in_specs=P(), out_specs=P())  # type: ignore[arg-type]


@pytest.mark.feature("SM-04")
def test_shard_map_needs_out_specs(mesh: Mesh) -> None:
    with pytest.raises(TypeError, match="needs the keyword argument out_specs"):
        minijax.shard_map(same, mesh=mesh, in_specs=P())


@pytest.mark.feature("SM-04")
def test_shard_map_needs_a_mesh() -> None:
    with pytest.raises(ValueError, match=r"there is no mesh.*\n.*set_mesh"):
        minijax.shard_map(same, in_specs=P("x"), out_specs=P("x"))(X)


@pytest.mark.feature("SM-07")
def test_collectives_over_axes_left_to_the_compiler_are_unbound(mesh: Mesh) -> None:
    f = minijax.shard_map(
        lambda a: lax.psum(a, "y"), mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
    )
    with pytest.raises(NameError, match=r"lax.psum: unbound axis name 'y'"):
        f(X)


def of_blocks(mesh: Mesh, function: Callable[..., Any]) -> Any:
    f = minijax.shard_map(function, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
    return minijax.make_jaxpr(f)(X)


ZEROS = np.zeros((2, 4), np.float32)
# What differs only in variance, and the cast that the message proposes.
CASTS: dict[str, tuple[Callable[..., Any], str]] = {
    "scan": (
        lambda a: lax.scan(lambda c, row: (c + row, None), jnp.zeros(4), a)[0],
        r"lax.pcast\(init, \('x', 'y'\), to='varying'\)",
    ),
    "scan_leaf": (
        lambda a: lax.scan(lambda c, _: ((c[0] + a, c[1]), None), (ZEROS, a), None, length=2)[0],
        r"lax.pcast\(init\[0\], \('x', 'y'\), to='varying'\)",
    ),
    "fori_loop": (
        lambda a: lax.fori_loop(0, 3, lambda i, c: c + a, ZEROS),
        r"lax.pcast\(init_val, \('x', 'y'\), to='varying'\)",
    ),
    "while_loop": (
        lambda a: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + a), (0, ZEROS)),
        r"lax.pcast\(init_val\[1\], \('x', 'y'\), to='varying'\)",
    ),
    "result_varies_less": (
        lambda a: lax.fori_loop(0, 3, lambda i, c: lax.psum(c, "x"), a),
        r"lax.pcast\(x, 'x', to='varying'\) on what body_fun returns for init_val",
    ),
    "cond": (
        lambda a: lax.cond(True, lambda: a, lambda: jnp.asarray(ZEROS)),
        r"lax.pcast\(x, \('x', 'y'\), to='varying'\) on result of false_fun",
    ),
    "switch": (
        lambda a: lax.switch(0, [lambda: jnp.asarray(ZEROS), lambda: a]),
        r"lax.pcast\(x, \('x', 'y'\), to='varying'\) on result of branches\[0\]",
    ),
}


@pytest.mark.feature("SM-11", "VT-04")
@pytest.mark.parametrize("name", CASTS)
def test_control_flow_proposes_the_cast(name: str, mesh: Mesh) -> None:
    function, fix = CASTS[name]
    with pytest.raises(TypeError, match=r"fix       " + fix + r"(\n|$)"):
        of_blocks(mesh, function)


@pytest.mark.feature("SM-11")
def test_the_proposed_cast_fixes_the_loop(mesh: Mesh) -> None:
    def f(a: Any) -> Any:
        init = lax.pcast(jnp.zeros(4), ("x", "y"), to="varying")
        return lax.scan(lambda c, row: (c + row, None), init, a)[0] + a

    of_blocks(mesh, f)


@pytest.mark.feature("SM-11")
def test_zeros_like_a_block_vary_as_it_does(mesh: Mesh) -> None:
    of_blocks(mesh, lambda a: lax.fori_loop(0, 3, lambda i, c: c + a, jnp.zeros_like(a)))


@pytest.mark.feature("SM-11")
@pytest.mark.parametrize(
    "function",
    [
        lambda a: lax.cond(jnp.sum(a) > 0, lambda: lax.ppermute(a, "x", [(0, 1)]), lambda: a),
        lambda a: lax.cond(
            lax.axis_index("x") > 0,
            lambda: lax.fori_loop(0, 3, lambda i, c: lax.ppermute(c, "x", [(0, 1)]), a),
            lambda: a,
        ),
        lambda a: lax.while_loop(lambda c: jnp.sum(c) < 9, lambda c: c + lax.psum(c, "x"), a),
    ],
    ids=["cond", "loop_in_cond", "while"],
)
def test_collectives_where_devices_go_apart_are_refused(function: Any, mesh: Mesh) -> None:
    with pytest.raises(ValueError, match=r"has a collective over an axis over which the predicate"):
        of_blocks(mesh, function)


@pytest.mark.feature("SM-11")
def test_collectives_over_another_axis_than_that_of_the_predicate_are_fine(mesh: Mesh) -> None:
    of_blocks(
        mesh,
        lambda a: (
            a
            + lax.cond(lax.axis_index("x") > 0, lambda: lax.psum(a, "y"), lambda: lax.pmax(a, "y"))
        ),
    )


@pytest.mark.feature("SM-02", "SM-03")
@pytest.mark.parametrize("given", ["numpy", "one_device"])
def test_abstract_mesh_needs_arrays_on_a_mesh(given: str, mesh: Mesh) -> None:
    abstract = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    f = minijax.shard_map(same, mesh=abstract, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ValueError, match=r"takes its devices from the arguments, and a has no"):
        f(X if given == "numpy" else jnp.asarray(X))


@pytest.mark.feature("SM-02", "SM-03")
def test_abstract_mesh_needs_arguments() -> None:
    abstract = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    f = minijax.shard_map(lambda: jnp.ones(2), mesh=abstract, in_specs=(), out_specs=P())
    with pytest.raises(ValueError, match=r"takes its devices from the arguments, and there are no"):
        f()


@pytest.mark.feature("SM-02", "SM-03")
def test_abstract_mesh_of_another_shape_is_refused(mesh: Mesh) -> None:
    abstract = AbstractMesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    f = minijax.shard_map(same, mesh=abstract, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ValueError, match=r"the mesh of the argument a has another shape"):
        f(minijax.device_put(X, NamedSharding(mesh, P("x"))))


@pytest.mark.feature("SM-02", "SM-03")
def test_abstract_mesh_of_another_size_is_refused_under_jit(mesh: Mesh) -> None:
    abstract = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    f = minijax.shard_map(same, mesh=abstract, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ValueError, match=r"the mesh has 8 devices, the program runs on 1"):
        minijax.jit(f)(X)


@pytest.mark.feature("SM-08")
def test_nested_shard_map_needs_an_axis_that_is_left(mesh: Mesh) -> None:
    inner = minijax.shard_map(same, mesh=mesh, in_specs=P(), out_specs=P())
    with pytest.raises(ValueError, match=r"inside a shard_map over all axes of the mesh already"):
        of_blocks(mesh, inner)


@pytest.mark.feature("SM-08")
def test_nested_shard_map_needs_the_mesh_around_it(mesh: Mesh) -> None:
    other = Mesh(mesh.devices.reshape(2, 4), ("x", "y"))
    inner = minijax.shard_map(same, mesh=other, in_specs=P(), out_specs=P(), axis_names={"y"})
    outer = minijax.shard_map(inner, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    with pytest.raises(ValueError, match=r"its mesh is not that of the shard_map around it"):
        outer(X)


@pytest.mark.feature("SM-09")
def test_vmap_refuses_an_axis_that_the_specs_use(mesh: Mesh) -> None:
    f = minijax.shard_map(same, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ValueError, match=r"spmd_axis_name names an axis over which a shard_map"):
        minijax.vmap(f, spmd_axis_name="x")(np.stack([X, X]))


@pytest.mark.feature("SM-07")
def test_constraints_on_manual_axes_are_refused(mesh: Mesh) -> None:
    f = minijax.shard_map(
        lambda a: lax.with_sharding_constraint(a, P("x")),
        mesh=mesh,
        in_specs=P("x"),
        out_specs=P("x"),
        axis_names={"x"},
    )
    with pytest.raises(ValueError, match=r"the function is written per device of 'x'"):
        minijax.jit(f)(X)


@pytest.mark.feature("EF-03")
@pytest.mark.parametrize("under_jit", [False, True])
def test_ordered_effects_need_one_device(under_jit: bool, mesh: Mesh) -> None:
    def f(a: Any) -> Any:
        minijax.debug.print("{}", jnp.sum(a), ordered=True)
        return a

    mapped = minijax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ValueError, match=r"ordered effects need one device"):
        (minijax.jit(mapped) if under_jit else mapped)(X)


class Calls:
    """What devices have called, each in its own order."""

    def __init__(self) -> None:
        self.of: dict[int, list[int]] = {}

    def note(self, device: Any, step: Any) -> np.ndarray[Any, Any]:
        """Takes another time on each device, and at each step."""
        time.sleep(0.001 * (int(device) * 5 % 3 + int(step) % 2))
        self.of.setdefault(int(device), []).append(int(step))
        return np.int32(step + 1)

    def at(self, step: Any) -> Any:
        """Calls `note` inside `shard_map`."""
        result = minijax.ShapeDtypeStruct((), jnp.int32)
        device = lax.axis_index("x")
        return io_callback(self.note, result, device, step, ordered=True)


def straight(calls: Calls, a: Any) -> Any:
    for step in range(4):
        calls.at(step)
    return a


def with_collectives(calls: Calls, a: Any) -> Any:
    for step in range(4):
        calls.at(step)
        a = a + lax.psum(a, "x")
    return a


def in_loops(calls: Calls, a: Any) -> Any:
    lax.while_loop(lambda step: step < 2, calls.at, 0)
    return lax.fori_loop(2, 4, lambda i, a: a + calls.at(i).astype(a.dtype), a)


def in_a_branch(calls: Calls, a: Any) -> Any:
    lax.cond(a.sum() > -1, lambda: calls.at(0), lambda: calls.at(9))
    for step in range(1, 4):
        minijax.jit(calls.at)(step)
    return a


@pytest.mark.feature("EF-03")
@pytest.mark.parametrize("under_jit", [False, True])
@pytest.mark.parametrize("body", [straight, with_collectives, in_loops, in_a_branch])
def test_each_device_makes_ordered_calls_in_its_order(
    body: Callable[[Calls, Any], Any], under_jit: bool, row: Mesh
) -> None:
    calls = Calls()
    f = partial(body, calls)
    mapped = minijax.shard_map(f, mesh=row, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    call = minijax.jit(mapped) if under_jit else mapped
    for _ in range(3):
        call(X)
    minijax.effects_barrier()
    assert calls.of == dict.fromkeys(range(4), [0, 1, 2, 3] * 3)


@pytest.mark.feature("PM-14")
def test_each_slice_of_pmap_makes_ordered_calls_in_its_order(row: Mesh) -> None:
    calls = Calls()
    mapped = minijax.pmap(partial(straight, calls), axis_name="x")
    for _ in range(2):
        mapped(X[:4])
    minijax.effects_barrier()
    assert calls.of == dict.fromkeys(range(4), [0, 1, 2, 3] * 2)


@pytest.mark.feature("EF-03")
def test_programs_and_regions_keep_the_order_of_calls(row: Mesh) -> None:
    calls = Calls()

    def steps(*numbers: int) -> Any:
        def f(a: Any) -> Any:
            for number in numbers:
                calls.at(number)
            return a

        return minijax.shard_map(f, mesh=row, in_specs=P("x"), out_specs=P("x"), check_vma=False)

    first = minijax.jit(lambda a, b: (steps(0, 1)(a), steps(2)(b)))
    second = minijax.jit(steps(3))
    for _ in range(3):
        first(X, X)
        second(X)
    minijax.effects_barrier()
    assert calls.of == dict.fromkeys(range(4), [0, 1, 2, 3] * 3)


@pytest.mark.feature("EF-03")
def test_ordered_calls_need_all_axes(mesh: Mesh) -> None:
    calls = Calls()
    f = partial(straight, calls)
    mapped = minijax.shard_map(
        f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}, check_vma=False
    )
    with pytest.raises(NotImplementedError, match="an ordered call cannot be made per device of"):
        minijax.jit(mapped)(X)


@pytest.mark.feature("EF-03")
def test_the_first_device_makes_ordered_calls_with_whole_values(row: Mesh) -> None:
    seen: list[tuple[int, ...]] = []

    @minijax.jit
    def f(a: Any) -> Any:
        for n in range(1, 4):
            io_callback(lambda b: seen.append(b.shape), None, a[:n], ordered=True)
        return a

    for _ in range(2):
        f(minijax.device_put(jnp.arange(8.0), NamedSharding(row, P("x"))))
    minijax.effects_barrier()
    assert seen == [(1,), (2,), (3,)] * 2


def with_backward(backward: Callable[..., Any]) -> Callable[..., Any]:
    @minijax.custom_vjp
    def f(w: Any, a: Any) -> Any:
        return w * a

    f.defvjp(lambda w, a: (w * a, (w, a)), backward)
    return f


def gradient_of(mesh: Mesh, f: Callable[..., Any]) -> Any:
    mapped = minijax.shard_map(f, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))
    return minijax.grad(lambda w: jnp.sum(mapped(w, X)))(jnp.ones(8))


@pytest.mark.feature("AD-06")
def test_cotangents_that_devices_do_not_share_are_refused(mesh: Mesh) -> None:
    f = with_backward(lambda r, ct: (jnp.sum(ct * r[1], 0), ct * r[0]))
    with pytest.raises(ValueError, match=r"w: f32\[8\]\{V:x\}.*\n.*\n.*lax.psum\(ct, 'x'\) for w"):
        gradient_of(mesh, f)


@pytest.mark.feature("AD-06")
def test_cotangents_summed_over_devices_are_right(mesh: Mesh) -> None:
    f = with_backward(lambda r, ct: (lax.psum(jnp.sum(ct * r[1], 0), "x"), ct * r[0]))
    np.testing.assert_allclose(gradient_of(mesh, f), X.sum(0))


@pytest.mark.feature("AD-06")
def test_tangents_that_vary_more_than_results_are_refused(mesh: Mesh) -> None:
    @minijax.custom_jvp
    def f(w: Any, a: Any) -> Any:
        return w * 2

    f.defjvp(lambda primals, dots: (primals[0] * 2, dots[0] * primals[1][0]))
    mapped = minijax.shard_map(f, mesh=mesh, in_specs=(P(), P("x")), out_specs=P())
    with pytest.raises(TypeError, match=r"tangent of result: f32\[8\]\{V:x\}"):
        minijax.jvp(lambda w: mapped(w, X), (jnp.ones(8),), (jnp.ones(8),))


@pytest.mark.feature("SM-11")
@pytest.mark.parametrize("operation", ["write", "add"])
def test_references_that_do_not_vary_take_no_values_that_do(operation: str, mesh: Mesh) -> None:
    def f(a: Any) -> Any:
        ref = minijax.new_ref(jnp.zeros(()))
        if operation == "write":
            ref[...] = jnp.sum(a)
        else:
            minijax.ref.addupdate(ref, ..., jnp.sum(a))
        return a

    with pytest.raises(ValueError, match=r"the value varies over 'x', 'y', and the reference does"):
        of_blocks(mesh, f)


@pytest.mark.feature("SM-11")
def test_writes_by_some_devices_only_are_refused(mesh: Mesh) -> None:
    def f(a: Any) -> Any:
        ref = minijax.new_ref(jnp.zeros(()))

        def write() -> None:
            ref[...] = 1.0

        lax.cond(lax.axis_index("x") > 0, write, lambda: None)
        return a

    with pytest.raises(ValueError, match=r"writes to a reference that does not vary over 'x'"):
        of_blocks(mesh, f)


@pytest.mark.feature("SM-04")
def test_in_specs_may_not_be_left_away_on_auto_axes(mesh: Mesh) -> None:
    with pytest.raises(TypeError, match=r"in_specs is missing.*'x', 'y', of type Auto"):
        minijax.shard_map(same, mesh=mesh, out_specs=P("x", "y"))(X)
