"""What collectives refuse, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.errors import ShardingTypeError
from minijax.sharding import PartitionSpec as P
from tests.lax.collectives import stacked

SIZES = {"x": 4, "y": 2}
OVER_X = P("x")
PERM = [(0, 1)]
NUMBERS = np.ones(4, np.int32)

EVERY: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("lax.psum", lax.psum),
    ("lax.pmean", lax.pmean),
    ("lax.pmax", lax.pmax),
    ("lax.pmin", lax.pmin),
    ("lax.axis_index", lambda v, a: lax.axis_index(a)),
    ("lax.axis_size", lambda v, a: lax.axis_size(a)),
    ("lax.all_gather", lax.all_gather),
    ("lax.all_gather_invariant", lax.all_gather_invariant),
    ("lax.all_gather_reduced", lax.all_gather_reduced),
    ("lax.psum_scatter", lax.psum_scatter),
    ("lax.unreduced_psum", lax.unreduced_psum),
    ("lax.unreduced_psum_scatter", lax.unreduced_psum_scatter),
    ("lax.all_to_all", lambda v, a: lax.all_to_all(v, a, 0, 0)),
    ("lax.pswapaxes", lambda v, a: lax.pswapaxes(v, a, 0)),
    ("lax.ppermute", lambda v, a: lax.ppermute(v, a, PERM)),
    ("lax.pshuffle", lambda v, a: lax.pshuffle(v, a, [1, 0])),
    ("lax.pbroadcast", lambda v, a: lax.pbroadcast(v, a, 0)),
    ("lax.psend", lambda v, a: lax.psend(v, a, PERM)),
    ("lax.precv", lambda v, a: lax.precv(lax.create_token(), v, a, PERM)),
    (
        "lax.ragged_all_to_all",
        lambda v, a: lax.ragged_all_to_all(v, v, *[NUMBERS] * 4, axis_name=a),
    ),
    ("lax.pcast", lambda v, a: lax.pcast(v, a, to="varying")),
    ("lax.psum", lambda v, a: lax.psum_start(v, a)),
    ("lax.all_gather", lambda v, a: lax.all_gather_start(v, a)),
]
by_collective = pytest.mark.parametrize(("name", "call"), EVERY, ids=range(len(EVERY)))


def trace(f: Callable[[Any], Any], *, check_vma: bool = True, spec: Any = OVER_X) -> Any:
    """Stages `f` of a block of shape (4, 3) that varies over x, on a mesh of 4 x 2 devices."""
    return minijax.make_jaxpr(mapped(f, check_vma=check_vma, spec=spec))(_argument(spec))


def _argument(spec: Any) -> Any:
    return minijax.ShapeDtypeStruct((16 if spec == OVER_X else 4, 3), np.float32)


def mapped(f: Callable[[Any], Any], *, check_vma: bool = True, spec: Any = OVER_X) -> Any:
    """`f` for each device; its result is thrown away."""

    def body(v: Any) -> Any:
        f(v)
        return v

    mesh = stacked.mesh_of(SIZES)
    return minijax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=check_vma)


def refused(
    error: type[Exception], match: Sequence[str], f: Callable[[Any], Any], **options: Any
) -> None:
    """Asserts that staging `f` fails, and that the text has all of `match`."""
    with pytest.raises(error) as caught:
        trace(f, **options)
    for words in match:
        assert words in str(caught.value)


def unreduced(v: Any) -> Any:
    """A value that is unreduced over x."""
    return lax.pcast(v, "x", to="unreduced")


def reduced(v: Any) -> Any:
    """A value that is reduced over x."""
    return lax.pcast(jnp.zeros(v.shape), "x", to="reduced")


@pytest.mark.feature("CO-30", "CO-31")
@by_collective
def test_unbound_names_are_named_outside_of_maps(name: str, call: Any) -> None:
    expected = ValueError if name == "lax.pcast" else NameError
    with pytest.raises(expected, match=name):
        call(jnp.ones((4, 3)), "q")


@pytest.mark.feature("CO-31")
@by_collective
def test_unbound_names_are_named_under_jit(name: str, call: Any) -> None:
    expected = ValueError if name == "lax.pcast" else NameError
    with pytest.raises(expected, match=name):
        minijax.jit(lambda v: call(v, "q"))(jnp.ones((4, 3)))


@pytest.mark.feature("CO-31")
@by_collective
def test_unbound_names_are_named_inside_shard_map(name: str, call: Any) -> None:
    refused(NameError, [name, "'q'", "one of 'x', 'y'"], lambda v: call(v, "q"))


@pytest.mark.feature("CO-31")
def test_axes_left_to_the_compiler_are_unbound() -> None:
    mesh = stacked.mesh_of(SIZES)
    f = minijax.shard_map(
        lambda v: lax.psum(v, "y"),
        mesh=mesh,
        in_specs=P("x"),
        out_specs=P("x"),
        axis_names={"x"},
    )
    with pytest.raises(NameError, match=r"lax.psum: unbound axis name 'y'"):
        minijax.make_jaxpr(f)(jnp.ones(4))


@pytest.mark.feature("CO-24", "CO-31")
@pytest.mark.parametrize("groups", [[[0, 1], [2]], [[0, 1, 2, 3, 4]], [[0, 0], [1, 2]], [[0, 1]]])
def test_groups_must_hold_each_position_once(groups: Any) -> None:
    refused(
        ValueError,
        ["lax.psum", "each position along the axis once", str(groups)],
        lambda v: lax.psum(v, "x", axis_index_groups=groups),
        check_vma=False,
    )


@pytest.mark.feature("CO-24", "CO-25")
@pytest.mark.parametrize("call", [lax.psum, lax.pmax, lax.pmin])
def test_groups_and_dimensions_exclude_each_other(call: Any) -> None:
    refused(
        ValueError,
        ["axes that are dimensions", "('x', 0)"],
        lambda v: call(v, ("x", 0), axis_index_groups=[[0, 1], [2, 3]]),
        check_vma=False,
    )


HALVES = {"axis_index_groups": [[0, 1], [2, 3]]}


@pytest.mark.feature("CO-24", "CO-31")
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("lax.psum", lambda v: lax.psum(v, "x", **HALVES)),
        ("lax.psum", lambda v: lax.psum(unreduced(v), "x", **HALVES)),
        ("lax.all_gather", lambda v: lax.all_gather(v, "x", to="invarying", **HALVES)),
        ("lax.all_gather", lambda v: lax.all_gather(v, "x", to="reduced", **HALVES)),
    ],
)
def test_types_know_no_groups(name: str, call: Any) -> None:
    refused(NotImplementedError, [name, "axis_index_groups", "[[0, 1], [2, 3]]"], call)


GROUPED = [
    ("lax.psum", lax.psum),
    ("lax.pmax", lax.pmax),
    ("lax.all_gather", lax.all_gather),
    ("lax.psum_scatter", lambda v, a, **k: lax.psum_scatter(v, a, tiled=True, **k)),
    ("lax.all_to_all", lambda v, a, **k: lax.all_to_all(v, a, 0, 0, tiled=True, **k)),
]


@pytest.mark.feature("CO-24", "CO-29")
@pytest.mark.parametrize(("name", "call"), GROUPED, ids=[name for name, _ in GROUPED])
def test_groups_along_an_axis_of_vmap_are_not_implemented(name: str, call: Any) -> None:
    f = minijax.vmap(lambda v: call(v, "i", **HALVES), axis_name="i")
    with pytest.raises(NotImplementedError, match=rf"{name}: axis_index_groups .* axes of vmap"):
        f(jnp.ones((4, 8)))


UNEQUAL = {"axis_index_groups": [[0, 1, 2], [3]]}


@pytest.mark.feature("CO-24", "CO-31")
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("lax.pmean", lax.pmean),
        ("lax.all_gather", lax.all_gather),
        ("lax.psum_scatter", lax.psum_scatter),
        ("lax.all_to_all", lambda v, a, **k: lax.all_to_all(v, a, 0, 0, **k)),
        (
            "lax.ragged_all_to_all",
            lambda v, a, **k: lax.ragged_all_to_all(v, v, *[NUMBERS] * 4, axis_name=a, **k),
        ),
    ],
)
def test_groups_must_be_of_one_size(name: str, call: Any) -> None:
    refused(
        ValueError,
        [name, "must be of one size", "sizes [3, 1]"],
        lambda v: call(v, "x", **UNEQUAL),
        check_vma=False,
    )


@pytest.mark.feature("CO-24", "CO-31")
@pytest.mark.parametrize("call", [lax.psum, lax.pmax])
def test_tpus_refuse_groups_of_different_sizes(call: Any) -> None:
    f = minijax.shard_map(
        lambda v: call(v, "x", **UNEQUAL),
        mesh=stacked.mesh_of(SIZES),
        in_specs=P("x"),
        out_specs=P("x"),
        check_vma=False,
    )
    traced = minijax.jit(f).trace(jnp.ones((16, 3)))
    with pytest.raises(ValueError, match="must be of one size here"):
        traced.lower(lowering_platforms=("tpu",))


@pytest.mark.feature("CO-05", "CO-06", "CO-31")
@pytest.mark.parametrize("call", [lax.pargmax, lax.pargmin])
@pytest.mark.parametrize("names", [("x", "y"), ["x"]])
def test_positions_are_along_one_axis(call: Any, names: Any) -> None:
    refused(TypeError, [f"lax.{call.__name__}", "must be one name"], lambda v: call(v, names))


@pytest.mark.feature("CO-09", "CO-31")
def test_pshuffle_needs_a_permutation() -> None:
    refused(
        ValueError,
        ["lax.pshuffle", "must be a permutation", "[0, 0, 1, 2]"],
        lambda v: lax.pshuffle(v, "x", [0, 0, 1, 2]),
    )


@pytest.mark.feature("CO-08", "CO-31")
@pytest.mark.parametrize(
    ("perm", "words"),
    [
        ([(0, 1), (0, 2)], "the source 0 twice"),
        ([(0, 1), (-4, 2)], "the source 0 twice"),
        ([(0, 1), (2, 1)], "the destination 1 twice"),
        ([(0, 7)], "out of range"),
        ([(-5, 0)], "out of range"),
    ],
)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("lax.ppermute", lax.ppermute),
        ("lax.psend", lax.psend),
        ("lax.precv", lambda v, a, p: lax.precv(lax.create_token(), v, a, p)),
    ],
)
def test_permutations_name_each_position_once(name: str, call: Any, perm: Any, words: str) -> None:
    refused(ValueError, [name, words, str(perm)], lambda v: call(v, "x", perm))


@pytest.mark.feature("CO-13", "CO-18", "CO-20", "CO-31")
@pytest.mark.parametrize(
    ("name", "words", "call"),
    [
        (
            "lax.all_to_all",
            "split_axis 1 has size 3, but there are 4 devices",
            lambda v: lax.all_to_all(v, "x", 1, 0),
        ),
        (
            "lax.all_to_all",
            "split_axis 1 has size 3, which 4 devices cannot share equally",
            lambda v: lax.all_to_all(v, "x", 1, 0, tiled=True),
        ),
        (
            "lax.psum_scatter",
            "scatter_dimension 1 has size 3, but there are 4 devices",
            lambda v: lax.psum_scatter(v, "x", scatter_dimension=1),
        ),
        (
            "lax.psum_scatter",
            "scatter_dimension 1 has size 3, which 4 devices cannot share equally",
            lambda v: lax.psum_scatter(v, "x", scatter_dimension=1, tiled=True),
        ),
        (
            "lax.unreduced_psum_scatter",
            "scatter_dimension 1 has size 3, which 4 devices cannot share equally",
            lambda v: lax.unreduced_psum_scatter(
                unreduced(v), "x", scatter_dimension=1, tiled=True
            ),
        ),
        (
            "lax.psum_scatter",
            "scatter_dimension 1 has size 3, but there are 4 devices",
            lambda v: lax.psum_scatter(unreduced(v), "x", scatter_dimension=1),
        ),
    ],
)
def test_blocks_must_fit_the_devices(name: str, words: str, call: Any) -> None:
    refused(ValueError, [name, words, "f32[4,3]"], call)


@pytest.mark.feature("CO-18", "CO-29", "CO-31")
@pytest.mark.parametrize("tiled", [True, False])
def test_blocks_must_fit_the_examples(tiled: bool) -> None:
    f = minijax.vmap(lambda v: lax.psum_scatter(v, "i", tiled=tiled), axis_name="i")
    with pytest.raises(ValueError, match=r"lax.psum_scatter: scatter_dimension 0 has size 3"):
        f(jnp.ones((4, 3)))


@pytest.mark.feature("CO-23", "CO-25", "CO-31")
def test_dimensions_of_constants_are_in_range() -> None:
    with pytest.raises(ValueError, match=r"lax.psum: axis is out of range"):
        lax.psum(np.ones((2, 3)), 5)
    assert lax.psum(np.ones((2, 3), np.float32), -1).tolist() == [3, 3]


@pytest.mark.feature("CO-15", "CO-13", "CO-18", "CO-31")
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("axis", lambda v: lax.all_gather(v, "x", axis=3)),
        ("axis", lambda v: lax.all_gather(v, "x", axis=2, tiled=True)),
        ("split_axis", lambda v: lax.all_to_all(v, "x", 2, 0)),
        ("concat_axis", lambda v: lax.all_to_all(v, "x", 0, -3)),
        ("scatter_dimension", lambda v: lax.psum_scatter(v, "x", scatter_dimension=2)),
    ],
)
def test_dimensions_out_of_range_are_named(name: str, call: Any) -> None:
    refused(ValueError, [f"{name} is out of range", "a dimension of an array"], call)


@pytest.mark.feature("CO-15", "CO-31")
def test_gathers_give_one_of_three_kinds() -> None:
    refused(
        ValueError,
        ["lax.all_gather", "to='unreduced'", "'varying', 'invarying', 'reduced'"],
        lambda v: lax.all_gather(v, "x", to="unreduced"),
    )


@pytest.mark.feature("VT-08", "CO-31")
def test_casts_give_one_of_three_kinds() -> None:
    refused(
        ValueError,
        ["lax.pcast", "to='invarying'", "'varying', 'reduced', 'unreduced'"],
        lambda v: lax.pcast(v, "x", to="invarying"),
    )


@pytest.mark.feature("VT-08", "CO-31")
@pytest.mark.parametrize(
    ("make", "to", "words"),
    [
        (lambda v: v, "varying", "from varying to varying"),
        (lambda v: v, "reduced", "from varying to reduced"),
        (lambda v: jnp.zeros(3), "unreduced", "from invarying to unreduced"),
        (reduced, "reduced", "from reduced to reduced"),
        (reduced, "unreduced", "from reduced to unreduced"),
        (unreduced, "varying", "from unreduced to varying"),
        (unreduced, "reduced", "from unreduced to reduced"),
        (unreduced, "unreduced", "from unreduced to unreduced"),
    ],
)
def test_casts_that_are_none_are_refused(make: Any, to: str, words: str) -> None:
    refused(
        ValueError,
        ["lax.pcast", words, "invarying to varying", "lax.psum"],
        lambda v: lax.pcast(make(v), "x", to=to),
    )


@pytest.mark.feature("VT-10", "CO-31")
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("lax.psum", lambda v: lax.psum(v, ("x", "y"))),
        ("lax.psum", lambda v: lax.pmean(v, ("x", "y"))),
        ("lax.psum_scatter", lambda v: lax.psum_scatter(v, ("x", "y"), tiled=True)),
        ("lax.pcast", lambda v: lax.pcast(v, ("x", "y"), to="varying")),
        ("lax.psum", lambda v: lax.psum(unreduced(v), ("x", "y"))),
    ],
)
def test_the_operand_must_be_of_one_kind_over_all_axes(name: str, call: Any) -> None:
    refused(ValueError, [name, "of different kinds over the axes", "invarying over 'y'"], call)


@pytest.mark.feature("VT-08", "CO-31")
@pytest.mark.parametrize("names", [{"x"}, frozenset({"x", "y"})])
@by_collective
def test_sets_are_no_axis_names(name: str, call: Any, names: Any) -> None:
    refused(TypeError, [name, "their order matters"], lambda v: call(v, names))


_V, _I = (lambda v: v), (lambda v: jnp.zeros(v.shape))


@pytest.mark.feature("VT-04", "CO-31")
@pytest.mark.parametrize(
    ("primitive", "make", "words"),
    [
        (lax.pvary_p, _V, "varying over 'x'"),
        (lax.pvary_p, unreduced, "unreduced over 'x'"),
        (lax.pvary_p, reduced, "reduced over 'x'"),
        (lax.preduced_p, _V, "varying over 'x'"),
        (lax.preduced_p, reduced, "reduced already over 'x'"),
        (lax.vary_unreduced_cast_p, _I, "not varying over 'x'"),
        (lax.vary_unreduced_cast_p, unreduced, "unreduced already over 'x'"),
        (lax.reduced_vary_cast_p, _I, "not reduced over 'x'"),
        (lax.reduced_vary_cast_p, _V, "varying over 'x'"),
    ],
)
def test_casts_check_what_they_begin_from(primitive: Any, make: Any, words: str) -> None:
    refused(ValueError, [f"the operand is {words}"], lambda v: primitive.bind(make(v), axes=("x",)))


@pytest.mark.feature("CO-19", "CO-20", "CO-31")
@pytest.mark.parametrize("call", [lax.unreduced_psum, lax.unreduced_psum_scatter])
@pytest.mark.parametrize(
    ("make", "axis", "words"),
    [
        (_V, "x", "varying over 'x'"),
        (_I, "x", "not unreduced over 'x'"),
        (reduced, "x", "not unreduced over 'x'"),
        (unreduced, "y", "not unreduced over 'y'"),
        (unreduced, 0, "must be names of mesh axes"),
    ],
)
def test_sums_of_summands_need_summands(call: Any, make: Any, axis: Any, words: str) -> None:
    expected = NameError if axis == 0 and call is lax.unreduced_psum_scatter else ValueError
    if expected is NameError:
        words = "unbound"
    refused(expected, [f"lax.{call.__name__}", words], lambda v: call(make(v), axis))


@pytest.mark.feature("CO-17", "CO-31")
@pytest.mark.parametrize(
    ("make", "axis", "words"),
    [
        (_I, "x", "not varying over 'x'"),
        (_V, "y", "not varying over 'y'"),
        (reduced, "x", "reduced already over 'x'"),
    ],
)
def test_gathers_to_reduced_need_varying_operands(make: Any, axis: str, words: str) -> None:
    refused(
        ValueError,
        ["lax.all_gather_reduced", words],
        lambda v: lax.all_gather_reduced(make(v), axis),
    )


@pytest.mark.feature("VT-11", "CO-31")
@pytest.mark.parametrize(
    "call",
    [
        lambda v: lax.unreduced_psum(v, "x"),
        lambda v: lax.unreduced_psum_scatter(v, "x"),
        lambda v: lax.all_gather_reduced(v, "x"),
        lambda v: lax.pcast(v, "x", to="unreduced"),
    ],
)
def test_without_types_nothing_is_a_summand(call: Any) -> None:
    refused(ValueError, ["f32[4,3]"], call, check_vma=False)


@pytest.mark.feature("CO-01", "CO-31")
@pytest.mark.parametrize(("make", "axis"), [(_I, "x"), (_V, "y")])
def test_psum_invariant_needs_a_varying_operand(make: Any, axis: str) -> None:
    refused(
        ValueError,
        ["psum_invariant", "the same on all devices", "lax.psum, which casts"],
        lambda v: lax.psum_invariant_p.bind(make(v), axes=(axis,)),
    )


@pytest.mark.feature("CO-25", "CO-31")
@pytest.mark.parametrize("call", [lax.psum, lax.pmax, lax.pmin])
def test_checked_types_refuse_dimensions(call: Any) -> None:
    refused(ValueError, ["dimensions", "('x', 0)"], lambda v: call(v, ("x", 0)))


@pytest.mark.feature("CO-25", "CO-31")
def test_psum_invariant_refuses_dimensions() -> None:
    refused(
        ValueError,
        ["lax.psum", "dimensions"],
        lambda v: lax.psum_invariant_p.bind(v, axes=("x", 0)),
    )


BOUND = {
    "pbroadcast": lambda v: lax.pbroadcast(v, "x", 0),
    "ppermute": lambda v: lax.ppermute_p.bind(v, axis_name=("x",), perm=((0, 1),)),
    "all_gather": lambda v: lax.all_gather_p.bind(
        v,
        all_gather_dimension=0,
        axis_index_groups=None,
        axis_name=("x",),
        axis_size=4,
        tiled=False,
    ),
    "reduce_scatter": lambda v: lax.reduce_scatter_p.bind(
        v, scatter_dimension=0, axis_index_groups=None, axis_name=("x",), axis_size=4, tiled=True
    ),
    "all_to_all": lambda v: lax.all_to_all_p.bind(
        v,
        split_axis=0,
        concat_axis=0,
        axis_index_groups=None,
        axis_name="x",
        axis_size=4,
        tiled=True,
    ),
}


@pytest.mark.feature("VT-09", "CO-31")
@pytest.mark.parametrize("name", BOUND)
def test_primitives_that_keep_variance_need_it(name: str) -> None:
    refused(ValueError, [name, "not varying over 'x'", "lax.pvary"], lambda v: BOUND[name](_I(v)))


@pytest.mark.feature("VT-11", "CO-31")
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("lax.psum", lambda v: lax.psum(reduced(v), "x")),
        ("lax.psum_scatter", lambda v: lax.psum_scatter(reduced(v), "x")),
        ("lax.pmax", lambda v: lax.pmax(reduced(v), "x")),
        ("lax.all_gather", lambda v: lax.all_gather(reduced(v), "x")),
        ("lax.ppermute", lambda v: lax.ppermute(reduced(v), "x", PERM)),
    ],
)
def test_reduced_operands_are_refused(name: str, call: Any) -> None:
    refused(ValueError, [name, "the operand is reduced over 'x'", "{R:x}"], call)


@pytest.mark.feature("VT-11", "CO-31")
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("lax.pmax", lambda v: lax.pmax(unreduced(v), "x")),
        ("lax.pmin", lambda v: lax.pmin(unreduced(v), "x")),
        ("lax.all_gather", lambda v: lax.all_gather(unreduced(v), "x")),
        ("lax.all_to_all", lambda v: lax.all_to_all(unreduced(v), "x", 0, 0)),
        ("lax.ppermute", lambda v: lax.ppermute(unreduced(v), "x", PERM)),
        ("lax.pbroadcast", lambda v: lax.pbroadcast(unreduced(v), "x", 0)),
        ("lax.psend", lambda v: lax.psend(unreduced(v), "x", PERM)),
    ],
)
def test_unreduced_operands_are_refused(name: str, call: Any) -> None:
    refused(ValueError, [name, "the operand is unreduced over 'x'", "{U:x}"], call)


@pytest.mark.feature("CO-07", "CO-31")
@pytest.mark.parametrize("source", [4, -5])
def test_broadcasts_need_a_source_in_range(source: int) -> None:
    refused(
        ValueError,
        ["lax.pbroadcast", "source is out of range", "from 0 to 3"],
        lambda v: lax.pbroadcast(v, "x", source),
    )


@pytest.mark.feature("CO-30")
@pytest.mark.parametrize(
    ("primitive", "error", "args", "params"),
    [
        (
            lax.all_to_all_p,
            RuntimeError,
            1,
            {
                "axis_name": "x",
                "split_axis": 0,
                "concat_axis": 0,
                "axis_size": 4,
                "tiled": True,
                "axis_index_groups": None,
            },
        ),
        (
            lax.ragged_all_to_all_p,
            RuntimeError,
            6,
            {"axis_name": ("x",), "axis_index_groups": None},
        ),
        (
            lax.ppermute_p,
            NotImplementedError,
            1,
            {"axis_name": ("x",), "perm": ((0, 1),)},
        ),
        (lax.pbroadcast_p, NotImplementedError, 1, {"axis_name": "x", "source": 0}),
    ],
)
def test_primitives_have_no_meaning_outside_of_maps(
    primitive: Any, error: Any, args: int, params: Any
) -> None:
    with pytest.raises(error, match="nobody to speak to outside of a map"):
        primitive.bind(*[NUMBERS] * args, **params)


@pytest.mark.feature("CO-18", "CO-31")
@pytest.mark.parametrize("runner", ["checked", "unchecked", "vmap"])
def test_booleans_cannot_be_scattered(runner: str) -> None:
    f = stacked.RUNNERS[runner](lambda v: lax.psum_scatter(v, "x", tiled=True), {"x": 4})
    with pytest.raises(TypeError, match=r"lax.psum_scatter: cannot combine arrays of bool"):
        f(np.zeros((4, 4), np.bool_))


@pytest.mark.feature("AD-07", "CO-31")
@pytest.mark.parametrize("call", [lax.pmax, lax.pmin])
def test_maxima_have_no_derivative(call: Any) -> None:
    refused(
        NotImplementedError,
        [call.__name__, "forward-mode differentiation"],
        minijax.grad(lambda v: call(v, "x").sum()),
    )


@pytest.mark.feature("VT-12", "CO-31")
@pytest.mark.parametrize(
    "primitive",
    [
        lax.pvary_p,
        lax.preduced_p,
        lax.vary_unreduced_cast_p,
        lax.reduced_vary_cast_p,
    ],
)
def test_casts_need_shard_map(primitive: Any) -> None:
    with pytest.raises(ValueError, match="call it inside shard_map"):
        primitive.bind(jnp.ones(3), axes=("x",))


@pytest.mark.feature("CO-29", "CO-31")
def test_ragged_exchanges_along_an_axis_of_vmap_are_not_implemented() -> None:
    def f(v: Any) -> Any:
        return lax.ragged_all_to_all(v, v, *[NUMBERS] * 4, axis_name="i")

    with pytest.raises(NotImplementedError, match=r"lax.ragged_all_to_all: is not implemented"):
        minijax.vmap(f, axis_name="i")(jnp.ones((4, 3)))


RAGGED = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


@pytest.mark.feature("CO-14", "CO-31")
@pytest.mark.parametrize("which", range(4), ids=RAGGED)
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.ones(4, np.float32), "must be integers"),
        (np.ones((4, 1), np.int32), "must have one dimension"),
        (np.int32(1), "must have one dimension"),
        (np.ones(0, np.int32), "not empty"),
    ],
)
def test_ragged_exchanges_name_the_numbers_that_do_not_fit(
    which: int, bad: Any, words: str
) -> None:
    given = [NUMBERS] * 4
    given[which] = bad
    refused(
        ValueError,
        ["lax.ragged_all_to_all", RAGGED[which], words],
        lambda v: lax.ragged_all_to_all(v, v, *given, axis_name="x"),
    )


@pytest.mark.feature("CO-14", "CO-31")
@pytest.mark.parametrize(
    ("output", "numbers", "words"),
    [
        (np.zeros((4, 2), np.float32), NUMBERS, "do not fit into output"),
        (np.zeros((4, 3), np.int32), NUMBERS, "do not fit into output"),
        (np.float32(0), NUMBERS, "do not fit into output"),
        (np.zeros((4, 3), np.float32), np.ones(6, np.int32), "6 slices cannot be shared equally"),
    ],
)
def test_ragged_exchanges_refuse_arrays_that_do_not_fit(
    output: Any, numbers: Any, words: str
) -> None:
    refused(
        ValueError,
        ["lax.ragged_all_to_all", words],
        lambda v: lax.ragged_all_to_all(v, output, *[numbers] * 4, axis_name="x"),
    )


@pytest.mark.feature("CO-14", "CO-31")
def test_ragged_exchanges_need_numbers_of_one_length() -> None:
    refused(
        ValueError,
        ["lax.ragged_all_to_all", "of one length"],
        lambda v: lax.ragged_all_to_all(
            v, v, np.ones(8, np.int32), NUMBERS, NUMBERS, NUMBERS, axis_name="x"
        ),
    )


def test_sharding_type_errors_are_those_of_the_public_module() -> None:
    refused(ShardingTypeError, ["mul", "reduced"], lambda v: unreduced(v) * jnp.ones(v.shape))
