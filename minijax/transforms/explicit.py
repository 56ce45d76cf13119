"""Shardings in types, by hand: `reshard`, and functions in which mesh axes have other types.

Inside `auto_axes` the compiler decides about axes that are Explicit around it; `explicit_axes` is
the reverse.  At the border values are resharded to the types that hold on the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from minijax.core import config, meshes, source, tree
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.core.meshes import UNCONSTRAINED, AbstractMesh, AxisType, PartitionSpec, names_of
from minijax.core.operators import Value, Values
from minijax.core.trace import current
from minijax.interpreters import flattening
from minijax.interpreters.reshard import reshard_to
from minijax.lowering import eager
from minijax.sharding import rules
from minijax.sharding.named import NamedSharding, SingleDeviceSharding, is_abstract, named
from minijax.transforms.device_put import device_put
from minijax.transforms.jit import jit

T = TypeVar("T")


def reshard(xs: T, out_shardings: object) -> T:
    """The arrays of a tree, split otherwise.

    Inside programs the types of the results show it, and the compiler communicates as needed.

    Args:
        xs: a tree of arrays.
        out_shardings: a `NamedSharding`, a `PartitionSpec` for the mesh in force, or a tree prefix
            of such.

    Raises:
        ValueError: a spec names an axis that is not Explicit, or does not divide a dimension.
        NoMeshError: there is a spec, and no mesh in force.

    Example:
        >>> with jax.set_mesh(jax.make_mesh((8,), ("x",))):
        ...     x = jax.reshard(jnp.arange(16), jax.P("x"))
        >>> jax.typeof(x)
        ShapedArray(int32[16@x])
    """
    leaves, treedef = tree.flatten(xs)
    targets = tree.broadcast_prefix(out_shardings, xs, is_leaf=tree.is_none)
    outs = [_resharded(x, target) for x, target in zip(leaves, targets, strict=True)]
    return tree.unflatten(treedef, outs)


def _resharded(x: Value, target: Any) -> Any:
    wanted = rules.resolve(target, "reshard", "out_shardings")
    if wanted is None:
        return x
    _check_explicit(wanted)
    if current.value is not eager.EAGER:
        return reshard_to(x, wanted)
    if is_abstract(target):
        own = getattr(x, "sharding", None)
        target = target.spec if not isinstance(own, NamedSharding) else own.with_spec(target.spec)
    return device_put(x, _with_all_entries(target, aval_of(x).ndim))


def _with_all_entries(target: Any, ndim: int) -> Any:
    """A spec or sharding with an entry for each dimension, as types have it."""
    spec = target.spec if isinstance(target, NamedSharding) else target
    if len(spec) >= ndim:
        return target
    spec = spec.with_entries((*spec, *[None] * (ndim - len(spec))))
    return target.with_spec(spec) if isinstance(target, NamedSharding) else spec


def _check_explicit(sharding: NamedSharding) -> None:
    mesh, spec = sharding.mesh, sharding.spec
    for name in (*spec.names(), *spec.unreduced, *spec.reduced):
        if mesh.axis_type(name) is not AxisType.Explicit:
            problem = f"the axis {name!r} is of type {mesh.axis_type(name).name}."
            got = f"{spec} on {mesh}"
            expected = "axes of type Explicit"
            fix = "lax.with_sharding_constraint for axes that the compiler decides about"
            error(ValueError, "reshard", problem, got=got, expected=expected, fix=fix)
    if UNCONSTRAINED in spec and mesh.are_all_axes_explicit:
        problem = "an entry is UNCONSTRAINED, but no axis is left to the compiler."
        fix = "None, or the names of axes"
        error(ValueError, "reshard", problem, got=f"{spec} on {mesh}", fix=fix)


@overload
def auto_axes(
    f: Callable[..., T], /, *, axes: object = ..., out_sharding: object = ...
) -> Callable[..., T]: ...
@overload
def auto_axes(
    f: None = None, /, *, axes: object = ..., out_sharding: object = ...
) -> Callable[[Callable[..., T]], Callable[..., T]]: ...


@flattening.or_decorator
def auto_axes(
    f: Callable[..., T], /, *, axes: object = None, out_sharding: object = None
) -> Callable[..., T]:
    """A function inside which the compiler decides about mesh axes.

    Args:
        f: the function; without it, the result is a decorator.
        axes: a name or names; all axes of the mesh by default.
        out_sharding: how the results are split outside, a sharding or spec or a tree prefix of
            such; may also be given in the call.

    Raises:
        TypeError: `f` cannot be called, or in a call `out_sharding` is given nowhere.
        ValueError: there is no mesh, or no axis of such a name.

    Example:
        >>> @jax.sharding.auto_axes(out_sharding=jax.P("x"))
        ... def f(x):
        ...     print(jax.typeof(x))
        ...     return jnp.flip(x)
        >>> with jax.set_mesh(jax.make_mesh((8,), ("x",))):
        ...     print(f(jax.reshard(jnp.arange(8), jax.P("x"))))
        i32[8]
        [7 6 5 4 3 2 1 0]
    """
    return _with_axes_of("auto_axes", f, axes, AxisType.Auto, "out_sharding", out_sharding)


@overload
def explicit_axes(
    f: Callable[..., T], /, *, axes: object = ..., in_sharding: object = ...
) -> Callable[..., T]: ...
@overload
def explicit_axes(
    f: None = None, /, *, axes: object = ..., in_sharding: object = ...
) -> Callable[[Callable[..., T]], Callable[..., T]]: ...


@flattening.or_decorator
def explicit_axes(
    f: Callable[..., T], /, *, axes: object = None, in_sharding: object = None
) -> Callable[..., T]:
    """A function inside which types show how values are split over mesh axes.

    Args:
        f: the function; without it, the result is a decorator.
        axes: a name or names; all axes of the mesh by default.
        in_sharding: how the arguments are split inside, a sharding or spec or a tree prefix of the
            arguments; may also be given in the call.

    Raises:
        TypeError: `f` cannot be called, or in a call `in_sharding` is given nowhere.
        ValueError: there is no mesh, or no axis of such a name.

    Example:
        >>> @jax.sharding.explicit_axes(in_sharding=jax.P("x"))
        ... def f(x):
        ...     print(jax.typeof(x))
        ...     return x
        >>> mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        >>> with jax.set_mesh(mesh):
        ...     _ = jax.jit(f)(jnp.arange(8))
        i32[8@x]
    """
    return _with_axes_of("explicit_axes", f, axes, AxisType.Explicit, "in_sharding", in_sharding)


def _with_axes_of(
    name: str, f: Callable[..., T], axes: object, kind: AxisType, option: str, default: object
) -> Callable[..., T]:
    """A function with axes of another type, run as a program where nothing is traced.

    Args:
        name: the transformation.
        f: the function.
        axes: the axes that change their type.
        kind: the type that they have inside.
        option: what says how values are split on the side where axes are Explicit.
        default: what it says where a call does not tell.
    """
    eager.check_callable(name, f)

    @source.result_of(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = kwargs.pop(option, None)
        wanted = default if given is None else given
        if wanted is None:
            problem = f"needs the keyword argument {option}."
            error(TypeError, name, problem, fix=f"{name}(f, {option}=spec), or give it in the call")

        def run(*args: Any, **kwargs: Any) -> Any:
            outer = _mesh_around(name, tree.leaves((args, kwargs)))
            inner = outer.update_axis_types(dict.fromkeys(_chosen(name, axes, outer), kind))
            if kind is AxisType.Explicit:
                args = _split(args, wanted, inner, name)
            else:
                args, kwargs = tree.map(lambda x: _retyped(x, inner), (args, kwargs))
            with config.override(meshes.abstract_mesh, inner):
                outs = f(*args, **kwargs)
            if kind is AxisType.Explicit:
                return tree.map(lambda x: _retyped(x, outer), outs)
            return _split(outs, wanted, outer, name)

        return (jit.jit(run) if current.value is eager.EAGER else run)(*args, **kwargs)

    return call


def _mesh_around(name: str, values: Values) -> AbstractMesh:
    mesh = meshes.get_abstract_mesh()
    if mesh.empty:
        mesh = rules.mesh_of(map(aval_of, values)) or mesh
    if mesh.empty:
        fix = "minijax.set_mesh(mesh), or arguments that are split over Explicit axes"
        error(ValueError, name, "there is no mesh whose axes could change their types.", fix=fix)
    return mesh


def _chosen(name: str, axes: object, mesh: AbstractMesh) -> Sequence[Any]:
    chosen = mesh.axis_names if axes is None else names_of(axes if axes != () else None)
    if isinstance(axes, (list, set, frozenset)):
        chosen = tuple(axes)
    strange = [axis for axis in chosen if axis not in mesh.axis_names]
    if strange:
        error(ValueError, name, f"axes names no axis of the mesh: {strange}.", got=str(mesh))
    return chosen


def _retyped(x: Value, mesh: AbstractMesh) -> Any:
    """A value with the type it has on a mesh of the same axes with other types."""
    sharding = aval_of(x).split
    if sharding is None:
        return x
    kept = [
        tuple(n for n in names_of(entry) if mesh.axis_type(n) is AxisType.Explicit)
        for entry in sharding.spec
    ]
    return reshard_to(x, named(mesh, PartitionSpec(*kept)))


def _split(xs: object, shardings: object, mesh: AbstractMesh, name: str) -> Any:
    leaves, treedef = tree.flatten(xs)
    targets = tree.broadcast_prefix(shardings, xs, is_leaf=tree.is_none)
    outs = []
    for x, target in zip(leaves, targets, strict=True):
        spec = target.spec if isinstance(target, NamedSharding) else target
        if not isinstance(spec, PartitionSpec):
            error(TypeError, name, "needs shardings or specs.", got=f"{target!r}")
        outs.append(reshard_to(x, named(mesh, spec)))
    return tree.unflatten(treedef, outs)


def placed(x: Any, target: Any, name: str) -> Any:
    """`x` where the argument `device=` or `out_sharding=` of a function wants it."""
    if is_abstract(target) and target.mesh in {meshes.EMPTY, meshes.get_abstract_mesh()}:
        target = None if target.mesh.empty else target.spec
    if target is None:
        return x
    if hasattr(target, "device_kind"):
        target = SingleDeviceSharding(target)
    if current.value is not eager.EAGER and isinstance(target, (NamedSharding, PartitionSpec)):
        if isinstance(target, PartitionSpec) or is_abstract(target):
            return reshard_to(x, rules.resolve(target, name))
    elif isinstance(target, PartitionSpec):
        target = _with_all_entries(target, aval_of(x).ndim)
    return device_put(x, target)
