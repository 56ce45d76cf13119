"""`xmap`: functions over named axes equal sums of products, however the axes are carried."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import config
from minijax.errors import ResourceTypingError
from minijax.experimental.maps import custom_resource_typing_rules, xmap
from minijax.lax.binary import mul_p
from minijax.sharding import AxisType

SIZES = {"i": 8, "j": 4, "k": 2}
MESHES = ((4, 2), (2, 4), (1, 8))


@pytest.fixture(scope="module", autouse=True)
def eight_devices() -> Iterator[None]:
    with jax.cpu_devices(8):
        yield


@pytest.fixture
def mesh() -> Iterator[Any]:
    mesh = jax.make_mesh((4, 2), ("x", "y"))
    with jax.set_mesh(mesh):
        yield mesh


@st.composite
def contractions(draw: Any) -> dict[str, Any]:
    """Names of two factors' dimensions and of the result's, and what carries the axes."""
    names = st.permutations(sorted(SIZES)).flatmap(
        lambda order: st.integers(1, 3).map(lambda n: order[:n])
    )
    left, right = draw(names), draw(names)
    used = sorted({*left, *right})
    out = draw(st.permutations(used).flatmap(lambda o: st.integers(0, len(o)).map(lambda n: o[:n])))
    sizes = draw(st.sampled_from(MESHES))
    resources: dict[str, Any] = {}
    for axis, size in zip(("x", "y"), sizes, strict=True):
        carried = draw(st.sampled_from([None, *used]))
        if carried is not None:
            taken = (*resources.get(carried, ()), axis)
            total = np.prod([dict(zip(("x", "y"), sizes, strict=True))[a] for a in taken])
            if SIZES[carried] % total == 0:
                resources[carried] = taken if size % 2 else taken[::-1]
    return {"left": left, "right": right, "out": out, "mesh": sizes, "resources": resources}


def factor(names: list[str]) -> np.ndarray[Any, Any]:
    shape = tuple(SIZES[n] for n in names)
    return (np.arange(np.prod(shape)) % 7 - 3).reshape(shape).astype(np.float32)


@pytest.mark.feature("XM-01")
@given(contractions())
def test_xmap_of_products_and_sums_is_einsum(case: dict[str, Any]) -> None:
    x, y = factor(case["left"]), factor(case["right"])
    summed = tuple(sorted({*case["left"], *case["right"]} - {*case["out"]}))
    with jax.set_mesh(jax.make_mesh(case["mesh"], ("x", "y"))):
        found = xmap(
            lambda a, b: lax.psum(a * b, summed),
            in_axes=[case["left"], case["right"]],
            out_axes=case["out"],
            axis_resources=case["resources"],
        )(x, y)
    text = f"{''.join(case['left'])},{''.join(case['right'])}->{''.join(case['out'])}"
    np.testing.assert_array_equal(found, np.einsum(text, x, y))


RESOURCES = [{}, {"i": "x"}, {"i": ("x", "y")}, {"i": ("y", "x")}, {"i": "x", "j": "y"}]


@pytest.mark.feature("XM-01", "XM-09")
@pytest.mark.parametrize("spmd", [True, False])
@pytest.mark.parametrize("resources", RESOURCES, ids=str)
def test_collectives_over_a_logical_axis_act_on_both_parts(
    mesh: Any, resources: dict[str, Any], spmd: bool
) -> None:
    x = np.arange(8 * 6 * 3.0, dtype=np.float32).reshape(8, 6, 3) % 11

    def f(v: Any) -> Any:
        place = lax.axis_index("i") + 100 * lax.axis_index("j")
        return lax.psum(v, "i"), place, lax.pmax(v, ("i", "j")), v - lax.pmean(v, "i")

    with config.experimental_xmap_spmd_lowering(spmd):
        sums, places, greatest, centred = xmap(
            f,
            in_axes=["i", "j", ...],
            out_axes=(["j", ...], {0: "i", 1: "j"}, {}, ["j", None, "i"]),
            axis_resources=resources,
        )(x)
    np.testing.assert_array_equal(sums, x.sum(0))
    np.testing.assert_array_equal(places, np.arange(8)[:, None] + 100 * np.arange(6))
    np.testing.assert_array_equal(greatest, x.max((0, 1)))
    np.testing.assert_allclose(centred, (x - x.mean(0)).transpose(1, 2, 0), atol=1e-5)


CARRIED = [{}, {"i": "x"}, {"i": "y"}, {"i": ("x", "y")}, {"i": ("y", "x")}]


@pytest.mark.parametrize("size", [8, 16])
@pytest.mark.parametrize("resources", CARRIED, ids=str)
def test_exchanges_along_a_logical_axis_follow_its_positions(
    mesh: Any, resources: Any, size: int
) -> None:
    x = np.arange(size * size, dtype=np.float32).reshape(size, size)
    shift = [(n, (n + 1) % size) for n in range(size)]

    def f(row: Any) -> Any:
        return (
            lax.all_gather(row[0], "i"),
            lax.ppermute(row, "i", shift),
            lax.psum_scatter(row, "i"),
            lax.all_to_all(row, "i", 0, 0),
        )

    gathered, shifted, scattered, exchanged = xmap(
        f,
        in_axes=["i", None],
        out_axes=([None], ["i", None], ["i"], ["i", None]),
        axis_resources=resources,
    )(x)
    np.testing.assert_array_equal(gathered, x[:, 0])
    np.testing.assert_array_equal(shifted, np.roll(x, 1, 0))
    np.testing.assert_array_equal(scattered, x.sum(0))
    np.testing.assert_array_equal(exchanged, x.T)


def test_axis_sizes_give_axes_that_no_argument_has() -> None:
    found = xmap(
        lambda x: x + lax.axis_index("i"),
        in_axes=[...],
        out_axes=["i", ...],
        axis_sizes={"i": 3},
    )(np.float32([1, 2]))
    np.testing.assert_array_equal(found, [[1, 2], [2, 3], [3, 4]])


def test_entries_are_tree_prefixes_of_arguments_and_results() -> None:
    x = {"a": np.arange(3.0), "b": (np.ones((2, 3)),)}
    found = xmap(
        lambda p, w: {"s": p["a"] * w, "t": p["b"][0].sum()},
        in_axes=({"a": ["i"], "b": {1: "i"}}, {}),
        out_axes={"s": {"i": 0}, "t": ["i"]},
    )(x, np.float32(2))
    np.testing.assert_array_equal(found["s"], [0, 2, 4])
    np.testing.assert_array_equal(found["t"], [2, 2, 2])


def test_grad_of_xmap_is_that_of_the_formula(mesh: Any) -> None:
    x = np.linspace(-1, 1, 16, dtype=np.float32)

    def loss(resources: Any) -> Any:
        mapped = xmap(lambda u: lax.psum(u * u, "i") * u, ["i"], ["i"], axis_resources=resources)
        return lambda v: mapped(v).sum()

    expected = jax.grad(lambda v: ((v * v).sum() * v).sum())(x)
    for resources in ({}, {"i": "x"}, {"i": ("x", "y")}):
        np.testing.assert_allclose(jax.grad(loss(resources))(x), expected, rtol=1e-5)


def test_values_closed_over_are_the_same_for_all_positions(mesh: Any) -> None:
    w = np.arange(3.0, dtype=np.float32)
    x = np.arange(8.0, dtype=np.float32)

    def loss(w: Any) -> Any:
        return xmap(lambda u: u * w.sum(), ["i"], ["i"], axis_resources={"i": "x"})(x).sum()

    np.testing.assert_allclose(jax.grad(loss)(w), np.full(3, x.sum()))


def test_xmap_nests_over_other_resources(mesh: Any) -> None:
    x = np.arange(8 * 4.0, dtype=np.float32).reshape(8, 4)
    inner = xmap(
        lambda e: lax.psum(e, "j") + lax.psum(e, ("i", "j")), ["j"], [], axis_resources={"j": "y"}
    )
    found = xmap(inner, ["i", ...], ["i"], axis_resources={"i": "x"})(x)
    np.testing.assert_array_equal(found, x.sum(1) + x.sum())


def test_vmap_of_xmap_stacks_results(mesh: Any) -> None:
    x = np.arange(8 * 3.0, dtype=np.float32).reshape(8, 3)
    mapped = xmap(lambda e: lax.psum(e, "i"), ["i"], [], axis_resources={"i": "x"})
    np.testing.assert_array_equal(jax.vmap(mapped, 1)(x), x.sum(0))


def test_collectives_inside_control_flow_refer_to_logical_axes(mesh: Any) -> None:
    x = np.arange(8.0, dtype=np.float32)

    def f(u: Any) -> Any:
        total = lax.psum(u, "i")
        branch = lax.cond(total > 3, lambda: lax.pmax(u, "i"), lambda: jnp.zeros_like(total))
        return branch + lax.fori_loop(0, 2, lambda _, c: lax.pmean(c + u, "i"), total)

    found = xmap(f, ["i"], [], axis_resources={"i": "x"})(x)
    np.testing.assert_allclose(found, 7 + 28 + 3.5 + 3.5)


def test_xmap_compiles_once_per_signature(mesh: Any) -> None:
    count = []
    mapped = xmap(lambda v: (count.append(1), v * 2)[1], ["i"], ["i"], axis_resources={"i": "x"})
    for _ in range(3):
        mapped(np.arange(8.0))
    assert len(count) == 1


def test_results_lie_where_their_axes_are_carried(mesh: Any) -> None:
    found = xmap(lambda v: v, ["i", "j"], ["j", "i"], axis_resources={"i": "x"})(np.ones((8, 3)))
    assert found.sharding.shard_shape(found.shape) == (3, 2)


@pytest.mark.feature("XM-08", "CR-18")
def test_a_resource_carries_only_one_axis_of_a_value(mesh: Any) -> None:
    mapped = xmap(
        lambda u, v: u * v, [["i"], ["j"]], ["i", "j"], axis_resources={"i": "x", "j": "x"}
    )
    with pytest.raises(TypeError, match="the resource 'x' carries both of the axes 'i' and 'j'"):
        mapped(np.ones(8), np.ones(4))


@pytest.mark.feature("XM-01")
def test_axes_that_fit_nothing_are_named(mesh: Any) -> None:
    x = np.ones((8, 4))
    with pytest.raises(ValueError, match=r"in_axes has \.\.\. in the midst of a list"):
        xmap(lambda row: row, [..., "j"], ["j", ...])(x)
    with pytest.raises(ValueError, match=r"no axis of the mesh\.(.|\n)*expected  one of 'x'"):
        xmap(lambda row: row, ["i", ...], ["i", ...], axis_resources={"i": "w"})(x)
    assert xmap(lambda column: column.sum(), {-1: "j"}, ["j"])(x).tolist() == [8] * 4


def test_the_refusal_names_where_the_value_is_made(mesh: Any) -> None:
    mapped = xmap(
        lambda u, v: u * v, [["i"], ["j"]], ["i", "j"], axis_resources={"i": "x", "j": "x"}
    )
    with pytest.raises(ResourceTypingError, match=r"made by mul at test_xmap\.py:\d+"):
        mapped(np.ones(8), np.ones(4))


def test_values_that_never_meet_may_share_a_resource(mesh: Any) -> None:
    found = xmap(
        lambda u, v: (u * 2, lax.psum(u, "i") * v),
        [["i"], ["j"]],
        (["i"], ["j"]),
        axis_resources={"i": "x", "j": "x"},
    )(np.arange(8.0), np.arange(4.0))
    np.testing.assert_array_equal(found[1], 28 * np.arange(4.0))


@pytest.mark.parametrize(
    "inside",
    [
        lambda u, v: jax.jit(lambda a, b: a + b)(u, v),
        lambda u, v: lax.fori_loop(0, 2, lambda _, c: c + v, u),
        lambda u, v: lax.cond(u > 0, lambda: v, lambda: -v),
        lambda u, v: lax.psum(u, "j"),
    ],
    ids=["jit", "loop", "cond", "collective"],
)
def test_resource_typing_recurses(mesh: Any, inside: Any) -> None:
    mapped = xmap(inside, [["i"], ["j"]], ["i", "j"], axis_resources={"i": "x", "j": "x"})
    with pytest.raises(ResourceTypingError, match="carries both"):
        mapped(np.ones(8), np.ones(4))


def test_arguments_and_results_are_typed_too(mesh: Any) -> None:
    shared = {"i": "x", "j": "x"}
    with pytest.raises(ResourceTypingError, match="argument u"):
        xmap(lambda u: u, ["i", "j"], ["i", "j"], axis_resources=shared)(np.ones((8, 4)))
    with pytest.raises(ResourceTypingError, match="result"):
        xmap(lambda u, v: u, [["i"], ["j"]], ["i", "j"], axis_resources=shared)(
            np.ones(8), np.ones(4)
        )


def test_an_inner_xmap_cannot_take_a_resource_of_the_outer_one(mesh: Any) -> None:
    inner = xmap(lambda e: lax.psum(e, "j"), ["j"], [], axis_resources={"j": "x"})
    with pytest.raises(ResourceTypingError, match="'i' of the xmap around"):
        xmap(inner, ["i", ...], ["i"], axis_resources={"i": "x"})(np.ones((8, 4)))


def test_custom_resource_typing_rules_replace_the_check(mesh: Any) -> None:
    seen = []
    custom_resource_typing_rules[mul_p] = lambda eqn, names, resources: seen.append(names)
    try:
        xmap(lambda u: lax.psum(u * 2, "i"), ["i"], [], axis_resources={"i": "x"})(np.ones(8))
    finally:
        del custom_resource_typing_rules[mul_p]
    assert seen == [[frozenset({"i"}), frozenset()]]


@pytest.mark.feature("XM-07")
def test_pmap_inside_is_refused() -> None:
    with pytest.raises(RuntimeError, match="xmap: pmap cannot be inside"):
        xmap(lambda r: jax.pmap(lambda e: e)(r), ["i", ...], ["i", ...])(np.ones((4, 8)))


@pytest.mark.feature("XM-10")
def test_ordered_effects_are_refused(mesh: Any) -> None:
    def f(r: Any) -> Any:
        jax.debug.print("{}", r, ordered=True)
        return r

    with pytest.raises(ValueError, match="ordered side effects are impossible"):
        xmap(f, ["i"], ["i"], axis_resources={"i": "x"})(np.ones(8))


REFUSED: list[tuple[Any, Any, Any, dict[str, Any], str]] = [
    ([["i"], ["i"]], ["i"], (8, 4), {}, "the axis 'i' has two sizes"),
    ([["i", None], []], ["i"], (8, ()), {}, "lists 2 dimension"),
    ([{3: "i"}, []], ["i"], (8, ()), {}, "names dimension 3 of argument"),
    ([["i"], ["j"]], [], (8, 4), {}, "result varies along 'i', which its out_axes do not have"),
    ([["i"], ["j"]], ["i", "j", "q"], (8, 4), {}, "out_axes names 'q'"),
    ([["i"], ["j"]], ["i", "j"], (8, 4), {"axis_resources": {"q": "x"}}, "axis_resources names"),
    ([["i"], ["j"]], ["i", "j"], (8, 4), {"axis_resources": {"i": "z"}}, "no axis of the mesh"),
    ([["i"], ["j"]], ["i", "j"], (6, 4), {"axis_resources": {"i": "x"}}, "cannot be split over 4"),
    ([["i"], ["j"]], ["i", "i"], (8, 4), {}, "names the axis 'i' twice"),
    ([["i"], ["j"]], ["i", "j"], (8, 4), {"axis_sizes": {"i": 3}}, "has two sizes"),
    ([["i"]], ["i"], (8, 4), {}, "in_axes is not a tree prefix"),
]


@pytest.mark.parametrize(("ins", "outs", "sizes", "options", "text"), REFUSED)
def test_xmap_refuses(
    mesh: Any, ins: Any, outs: Any, sizes: Any, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        xmap(lambda u, v: u + v, ins, outs, **options)(*map(np.ones, sizes))


def test_entries_must_name_dimensions() -> None:
    with pytest.raises(TypeError, match="in_axes must hold dicts and lists"):
        xmap(lambda u: u, 0, ["i"])(np.ones(3))


def test_collectives_are_renamed_in_the_program(mesh: Any) -> None:
    mapped = xmap(lambda v: lax.psum(v, "i"), ["i"], [], axis_resources={"i": "x"})
    text = str(jax.make_jaxpr(mapped)(np.ones(8)))
    assert "axes=('x', 0)" in text


def test_auto_axes_carry_as_well() -> None:
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    with jax.set_mesh(mesh):
        found = xmap(lambda v: v / lax.psum(v, "i"), ["i"], ["i"], axis_resources={"i": "x"})(
            np.ones(16)
        )
    np.testing.assert_allclose(found, np.full(16, 1 / 16))


def test_every_order_of_result_dimensions_is_reached(mesh: Any) -> None:
    x = np.arange(8 * 4 * 2.0).reshape(8, 4, 2)
    for order in itertools.permutations("ijk"):
        found = xmap(lambda v: v, list("ijk"), list(order), axis_resources={"i": "x", "j": "y"})(x)
        np.testing.assert_array_equal(found, np.einsum(f"ijk->{''.join(order)}", x))
