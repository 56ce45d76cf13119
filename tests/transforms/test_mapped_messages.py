"""What users read who misuse names, specs and axes of functions written per device."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax.core.errors import DuplicateSpecError
from minijax.sharding import Mesh
from minijax.sharding import PartitionSpec as P

X = np.arange(8, dtype=np.float32)
Y = np.ones((4, 4), np.float32)
ROWS = P("x")


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield Mesh(np.array(minijax.devices()).reshape(4, 2), ("x", "y"))


def mapped(
    function: Callable[..., Any], in_specs: Any = ROWS, out_specs: Any = ROWS, **options: Any
) -> Callable[[Mesh | None], Any]:
    return lambda mesh: minijax.shard_map(
        function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options
    )


def same(x: Any) -> Any:
    return x


SPEC_ERRORS = {
    "a name that the mesh lacks": (
        mapped(same, P("q")),
        ValueError,
        "in_specs names 'q', which the mesh does not have",
    ),
    "a name that stays with the compiler": (
        mapped(same, P("y"), axis_names={"x"}),
        ValueError,
        r"in_specs names 'y', which the function is not written(.|\n)*name the axis in axis_names",
    ),
    "a name of the region around": (
        mapped(mapped(same, axis_names={"y"})(None), axis_names={"x"}),
        ValueError,
        r"in_specs names 'x', over which the shard_map around(.|\n)*blocks already",
    ),
    "a name twice": (mapped(same, P("x", "x")), DuplicateSpecError, "in_specs names 'x' twice"),
    "no tuple": (
        mapped(same, {"a": P("x")}),
        ValueError,
        r"in_specs is not a tree prefix(.|\n)*wrap in_specs in a tuple",
    ),
    "too many results": (
        mapped(same, P("x"), (P("x"), P("x"))),
        ValueError,
        r"the results: leaf of type f32\[1,4\]\{V:x\}",
    ),
}


@pytest.mark.feature("SM-04")
@pytest.mark.parametrize(("make", "error", "text"), SPEC_ERRORS.values(), ids=SPEC_ERRORS)
def test_specs_that_do_not_fit_are_explained(
    mesh: Mesh, make: Callable[[Any], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make(mesh)(Y)


@pytest.mark.feature("SM-04")
def test_arguments_of_shard_map_go_by_position(mesh: Mesh) -> None:
    with pytest.raises(TypeError, match=r"go by position(.|\n)*keyword arguments x"):
        mapped(same)(mesh)(x=X)


@pytest.mark.feature("SM-01")
def test_none_leaves_an_argument_whole_on_auto_axes(mesh: Mesh) -> None:
    f = mapped(lambda x, y: (x, y.sum(0) + x[:1]), (P("x"), None), (P("x"), P("x")))(mesh)
    x, y = f(X, Y)
    assert x.tolist() == X.tolist()
    assert y.shape == (16,)


@pytest.mark.feature("SM-01")
def test_none_for_all_arguments_leaves_them_whole(mesh: Mesh) -> None:
    assert mapped(same, None, P())(mesh)(X).tolist() == X.tolist()


def test_an_unbound_name_lists_those_in_scope(mesh: Mesh) -> None:
    with pytest.raises(NameError, match=r"unbound axis name 'i'(.|\n)*one of 'x', 'y'"):
        mapped(lambda x: lax.psum(x, "i"))(mesh)(X)


def test_an_unbound_name_in_a_nameless_pmap_asks_for_one(mesh: Mesh) -> None:
    with pytest.raises(
        NameError, match=r"a pmap without axis_name(.|\n)*pmap\(\.\.\., axis_name='i'"
    ):
        minijax.pmap(lambda x: lax.psum(x, "i"))(X)


@pytest.mark.feature("CO-08")
@pytest.mark.parametrize("perm", [[1, 2, 3, 0], [(0, 1, 2)], [(0.5, 1)], 3])
def test_perm_of_other_things_than_pairs_is_refused(mesh: Mesh, perm: Any) -> None:
    with pytest.raises(TypeError, match=r"lax\.ppermute: perm must hold pairs"):
        mapped(lambda x: lax.ppermute(x, "x", perm))(mesh)(X)


@pytest.mark.parametrize("transform", [minijax.vmap, minijax.pmap])
def test_in_axes_that_do_not_fit_name_the_place_in_the_arguments(transform: Any) -> None:
    with pytest.raises(ValueError, match=r"in_axes\[0\]: dict with keys 'a'   the arguments\[0\]"):
        transform(lambda x, *, k: x, in_axes=({"a": 0},))({"b": X}, k=X)


@pytest.mark.parametrize("transform", [minijax.vmap, minijax.pmap])
def test_in_axes_of_one_tree_ask_for_a_tuple(transform: Any) -> None:
    with pytest.raises(ValueError, match="wrap in_axes in a tuple"):
        transform(same, in_axes={"a": 0})({"a": X})


@pytest.mark.feature("CO-03")
def test_a_derivative_of_pmax_is_refused_with_a_way_out() -> None:
    f = minijax.vmap(minijax.grad(lambda x: lax.pmax(x, "i")), axis_name="i")
    with pytest.raises(NotImplementedError, match=r"pmax: (.|\n)*lax\.stop_gradient"):
        f(X)
