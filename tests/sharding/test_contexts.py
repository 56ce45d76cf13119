"""`set_mesh`, `use_abstract_mesh`, `with mesh:` and what bare specs mean inside them."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import minijax
from minijax import P
from minijax.core.errors import NoMeshError
from minijax.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    contexts,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
    use_mesh,
)

EMPTY = AbstractMesh((), ())


@pytest.fixture
def entered(mesh: Mesh) -> Iterator[Mesh]:
    with pytest.warns(DeprecationWarning, match=r"set_mesh"):
        mesh.__enter__()
    yield mesh
    mesh.__exit__(None, None, None)


@pytest.mark.feature("CF-06", "CF-08")
def test_set_mesh_holds_for_a_block(mesh: Mesh) -> None:
    with set_mesh(mesh) as nothing:
        assert nothing is None
        assert (get_mesh(), get_abstract_mesh()) == (mesh, mesh.abstract_mesh)
    assert get_mesh().empty
    assert get_abstract_mesh() is EMPTY


@pytest.mark.feature("CF-06")
def test_set_mesh_holds_from_the_call_on(mesh: Mesh, devices: np.ndarray) -> None:
    other = Mesh(devices, "z")
    try:
        set_mesh(mesh)
        with use_mesh(other):
            assert get_mesh() is other
        assert get_mesh() is mesh
    finally:
        set_mesh(None)
    assert get_mesh().empty


@pytest.mark.feature("CF-06")
def test_set_mesh_of_no_devices_sets_none(mesh: Mesh) -> None:
    with set_mesh(mesh), set_mesh(Mesh(np.empty((), object), ())):
        assert get_abstract_mesh() is EMPTY


@pytest.mark.feature("CF-06")
def test_mesh_is_restored_after_an_error(mesh: Mesh) -> None:
    with pytest.raises(ZeroDivisionError), set_mesh(mesh):
        _ = 1 / 0
    assert get_mesh().empty


@pytest.mark.feature("CF-06")
@pytest.mark.parametrize("mesh", [EMPTY, "x"])
def test_set_mesh_refuses_what_has_no_devices(mesh: object) -> None:
    with pytest.raises(ValueError, match=r"needs a mesh with devices"):
        set_mesh(mesh)


@pytest.mark.feature("CF-06")
def test_set_mesh_refuses_manual_axes(mesh: Mesh) -> None:
    with pytest.raises(ValueError, match=r"Manual: \('x', 'y'\)"):
        set_mesh(mesh.update(axis_types=AxisType.Manual))


@pytest.mark.feature("CF-06", "CF-08")
@pytest.mark.parametrize("transform", [minijax.jit, minijax.grad, minijax.make_jaxpr])
@pytest.mark.parametrize("function", [lambda mesh: set_mesh(mesh), lambda mesh: get_mesh()])
def test_devices_stay_out_of_traced_functions(
    mesh: Mesh, transform: object, function: object
) -> None:
    def traced(x: object) -> object:
        function(mesh)
        return x

    with pytest.raises(ValueError, match=r"can only be used outside of jit"):
        transform(traced)(1.0)
    assert get_abstract_mesh() is EMPTY


@pytest.mark.feature("CF-05")
def test_abstract_mesh_enters_the_keys_of_traces(mesh: Mesh) -> None:
    seen = []
    f = minijax.jit(lambda x: (seen.append(get_abstract_mesh()), x)[1])
    for abstract in (EMPTY, mesh.abstract_mesh, EMPTY, mesh.abstract_mesh):
        with use_abstract_mesh(abstract):
            f(1.0)
    assert seen == [EMPTY, mesh.abstract_mesh]


@pytest.mark.feature("CF-08")
def test_use_abstract_mesh_works_while_tracing(mesh: Mesh) -> None:
    def f(x: object) -> object:
        with use_abstract_mesh(mesh.abstract_mesh):
            return x * get_abstract_mesh().size

    assert minijax.jit(f)(3.0) == 24.0


@pytest.mark.feature("CF-08")
def test_use_abstract_mesh_leaves_devices(mesh: Mesh, devices: np.ndarray) -> None:
    other = Mesh(devices, "z").abstract_mesh
    with set_mesh(mesh), use_abstract_mesh(other):
        assert (get_mesh(), get_abstract_mesh()) == (mesh, other)


@pytest.mark.feature("CF-08")
def test_use_abstract_mesh_refuses_devices(mesh: Mesh) -> None:
    with pytest.raises(ValueError, match=r"needs an AbstractMesh"):
        use_abstract_mesh(mesh)


@pytest.mark.feature("CF-08")
def test_use_abstract_mesh_refuses_another_size() -> None:
    inner = use_abstract_mesh(AbstractMesh((4,), ("x",)))
    with (
        use_abstract_mesh(AbstractMesh((2,), ("x",))),
        pytest.raises(ValueError, match=r"of size 4 inside .* of size 2"),
    ):
        inner.__enter__()


@pytest.mark.feature("CF-05")
def test_threads_start_without_a_mesh(mesh: Mesh, entered: Mesh) -> None:
    seen = []

    def look() -> None:
        seen.append(get_abstract_mesh())
        seen.append(get_mesh().empty)
        with pytest.raises(NoMeshError):
            contexts.resolve(P("x"), "f")

    with set_mesh(mesh):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [EMPTY, True]


@pytest.mark.feature("CF-09")
def test_entered_mesh_lets_specs_resolve(entered: Mesh) -> None:
    assert contexts.resolve(P("x"), "f") == minijax.NamedSharding(entered, P("x"))
    assert contexts.resolve_for_tracing(P("x"), "f").mesh is entered
    assert get_abstract_mesh() is EMPTY


@pytest.mark.feature("CF-09")
def test_set_mesh_goes_before_entered_meshes(entered: Mesh, devices: np.ndarray) -> None:
    other = Mesh(devices, "z")
    with set_mesh(other):
        assert contexts.resolve(P("z"), "f").mesh is other
        assert contexts.resolve_for_tracing(P("z"), "f").mesh is other.abstract_mesh


@pytest.mark.feature("CF-09")
def test_entered_meshes_are_a_stack(entered: Mesh, devices: np.ndarray) -> None:
    inner = Mesh(devices, "z")
    with pytest.warns(DeprecationWarning, match=r"set_mesh"), inner:
        assert contexts.resolve(P("z"), "f").mesh is inner
    assert contexts.resolve(P("x"), "f").mesh is entered


@pytest.mark.feature("CF-09")
def test_entered_mesh_must_not_redefine_axes(entered: Mesh, devices: np.ndarray) -> None:
    inner = Mesh(devices.reshape(2, 4), ("y", "z"))
    with (
        pytest.warns(DeprecationWarning, match=r"set_mesh"),
        pytest.raises(ValueError, match=r"redefines axes of a mesh around it: \['y'\]"),
        inner,
    ):
        pass
    assert contexts.resolve(P("x"), "f").mesh is entered


@pytest.mark.feature("CF-09")
def test_entered_mesh_may_be_entered_again(entered: Mesh) -> None:
    with pytest.warns(DeprecationWarning, match=r"set_mesh"), entered:
        assert contexts.resolve(P("x"), "f").mesh is entered


@pytest.mark.feature("CF-06")
@pytest.mark.parametrize("resolve", [contexts.resolve, contexts.resolve_for_tracing])
def test_spec_without_a_mesh_is_refused(resolve: object) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)the_function: .*none is set.*set_mesh"):
        resolve(P("x"), "the_function")


@pytest.mark.feature("CF-07")
@pytest.mark.parametrize(
    "make",
    [
        lambda: minijax.numpy.ones(3),
        lambda: minijax.numpy.array([1.0, 2.0]),
        lambda: minijax.numpy.arange(3),
        lambda: minijax.random.key(0),
        lambda: minijax.jit(lambda x: x)(np.arange(3)),
    ],
)
def test_arrays_are_made_on_every_device_of_the_mesh(mesh: Mesh, make: object) -> None:
    with set_mesh(mesh):
        x = make()
    assert x.sharding == minijax.NamedSharding(mesh, P())
    assert x.committed


@pytest.mark.feature("CF-07")
def test_device_put_of_no_place_takes_one_device(mesh: Mesh) -> None:
    with set_mesh(mesh):
        assert minijax.device_put(1.0).sharding.num_devices == 1


@pytest.mark.feature("CF-07")
def test_meshes_of_one_shape_share_a_trace(devices: np.ndarray) -> None:
    traces = []

    @minijax.jit
    def f(x: object) -> object:
        traces.append(1)
        return minijax.lax.with_sharding_constraint(x * 2, P("x"))

    for half in (devices[:4], devices[4:]):
        with set_mesh(Mesh(half, "x")):
            assert f(np.arange(8.0)).devices() == set(half)
    assert len(traces) == 1


@pytest.mark.feature("CF-06")
def test_described_arrays_take_specs(mesh: Mesh) -> None:
    with set_mesh(mesh):
        described = minijax.ShapeDtypeStruct((8,), np.float32, sharding=P("x"))
    assert described.sharding == minijax.NamedSharding(mesh, P("x"))
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        minijax.ShapeDtypeStruct((8,), np.float32, sharding=P("x"))
