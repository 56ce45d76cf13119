"""`shard_map`: a function written for one device, applied to the blocks of split arrays.

Input: a function of blocks, and specs that say how arguments are cut and results put together.
Output: a function of whole arrays.  The function is staged once, for the types of blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, Required, TypedDict, TypeVar, Unpack, overload

import numpy as np

from minijax.core import config, meshes, source, tree, tree_registry, vma
from minijax.core.aval import AbstractTodo, AbstractValue, ShapedArray, aval_of
from minijax.core.errors import ConcretizationTypeError, DuplicateSpecError, error, message
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo
from minijax.core.meshes import (
    UNCONSTRAINED,
    AbstractMesh,
    AxisType,
    MeshAxes,
    PartitionSpec,
    names_of,
)
from minijax.core.operators import Avals, Values
from minijax.core.trace import current
from minijax.interpreters import flattening, passes, staging, uniformity
from minijax.lax.control_flow import checks
from minijax.lowering import eager
from minijax.sharding import contexts
from minijax.sharding.named import NamedSharding
from minijax.transforms.per_device import primitive, steps
from minijax.transforms.per_device.region import Region, match

P = ParamSpec("P")
R = TypeVar("R")


class _Infer:
    """Stands for specs that follow from the types of the arguments."""

    def __repr__(self) -> str:
        return "Infer"


INFER = _Infer()

other_meshes: dict[type, Callable[[Callable[..., Any], Any, Any, Any], Callable[..., Any]]] = {}
"""What `shard_map` means on other meshes than of devices, by their type: a function of the user's
function, the mesh, in_specs and out_specs."""


class ShardMapOptions(TypedDict, total=False):
    """The options of `shard_map`, as types."""

    out_specs: Required[object]
    in_specs: object
    mesh: MeshAxes | None
    axis_names: Any
    check_vma: bool
    check_rep: bool | None


@overload
def shard_map(f: Callable[P, R], /, **options: Unpack[ShardMapOptions]) -> Callable[P, R]: ...
@overload
def shard_map(
    f: None = None, /, **options: Unpack[ShardMapOptions]
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


@flattening.or_decorator
def shard_map(
    f: Callable[P, R],
    /,
    *,
    out_specs: object = INFER,
    in_specs: object = INFER,
    mesh: MeshAxes | None = None,
    axis_names: Any = frozenset(),
    check_vma: bool = True,
    check_rep: bool | None = None,
) -> Callable[P, R]:
    """Runs a function on each device of a mesh, on that device's blocks of the arguments.

    Inside, collectives such as `lax.psum` communicate over the names of the mesh's axes.

    Shapes: a dimension that a spec splits over axes of total size k is k times shorter inside; of a
        result it is k times longer outside.
    Types:  with `check_vma`, a block varies over the axes of its spec, and is the same everywhere
        over others; so must results be over axes that their specs leave away.

    Args:
        f: a function of trees of blocks; without it, the result is a decorator.
        out_specs: a `PartitionSpec`, or a tree prefix of such, for the results.
        in_specs: the same for the positional arguments; None where the type of an argument says how
            it is split: on Auto axes, not at all.  What is not an array, and has None, reaches `f`
            as it is.  On Explicit axes in_specs may be omitted.
        mesh: a `Mesh` or an `AbstractMesh`; by default the mesh in force.
        axis_names: the axes that the function is written per device of; all of them by default.
            The compiler splits values over the others.
        check_vma: whether types tell over which axes values vary, so that results which specs call
            the same everywhere are, and derivatives communicate where they must and nowhere else.
        check_rep: the former name of `check_vma`.

    Raises:
        TypeError: `f` cannot be called, or a spec is none.
        ValueError: specs are not a prefix of the arguments or results, do not fit their ranks or
            sizes, or name axes that are not manual; there is no mesh; or a result may differ
            between devices where its spec says that it does not.

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> def normalized(block):
        ...     print("each device sees", jax.typeof(block))
        ...     return block / lax.psum(jnp.sum(block), "x")
        >>> jax.shard_map(normalized, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.ones(16))
        each device sees f32[2]{V:x}
        Array([0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625,
               0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625],
              dtype=float32)
    """
    if check_rep is not None:
        check_vma = check_rep
    eager.check_callable("shard_map", f)
    if out_specs is INFER:
        error(
            TypeError, "shard_map", "needs the keyword argument out_specs.", fix="out_specs=P(...)"
        )
    if type(mesh) in other_meshes:
        return other_meshes[type(mesh)](f, mesh, in_specs, out_specs)
    names = frozenset({axis_names}) if isinstance(axis_names, str) else frozenset(axis_names)
    mapped = _Mapped(f, mesh, in_specs, out_specs, names, bool(check_vma))
    if mesh is not None:
        mapped.region()

    @source.result_of(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            problem = "arguments go by position: in_specs has an entry for each."
            got = f"keyword arguments {', '.join(kwargs)}"
            fix = "pass them by position; bind what is no array with functools.partial"
            error(TypeError, "shard_map", problem, got=got, fix=fix)
        return mapped.call(args)

    return call


class _Mapped(NamedTuple):
    """A function to map over devices, and how."""

    function: Callable[..., Any]
    mesh: MeshAxes | None
    in_specs: Any
    out_specs: Any
    axis_names: frozenset[Any]
    check_vma: bool

    def region(self) -> Region:
        """The mesh, and the axes that become manual."""
        mesh = _mesh_for(self.mesh)
        axes = self.axis_names or frozenset(n for n in mesh.axis_names if n not in mesh.manual_axes)
        if mesh.manual_axes and not axes:
            problem = "the function is inside a shard_map over all axes of the mesh already."
            fix = "give the outer shard_map axis_names={...} and leave some for this one"
            error(ValueError, "shard_map", problem, got=str(mesh), fix=fix)
        strange = [n for n in axes if n not in mesh.axis_names]
        if strange:
            problem = f"axis_names names no axis of the mesh: {meshes.names_text(strange)}."
            error(ValueError, "shard_map", problem, got=str(mesh))
        taken = [n for n in axes if n in mesh.manual_axes]
        if taken:
            problem = f"the function is inside a shard_map over {meshes.names_text(taken)} already."
            fix = "axis_names={...} with the other axes"
            error(ValueError, "shard_map", problem, got=str(mesh), fix=fix)
        return Region(mesh, axes, self.check_vma)

    def call(self, args: tuple[Any, ...]) -> Any:
        """Applies the function to the blocks of the arguments."""
        region = self.region()
        args = self._with_static(args)
        leaves, in_tree = tree.flatten((args, {}))
        info = flattening.debug_info("shard_map", self.function, in_tree)
        fix = "None in in_specs: what is no array then reaches the function as it is"
        avals = flattening.avals_of(leaves, lambda: info.arg_names or (), "shard_map", fix)
        in_specs = self._in_specs(region, args, avals, info)
        if isinstance(region.mesh, AbstractMesh) and current.value is eager.EAGER:
            region = region._replace(mesh=_mesh_of_arguments(region.mesh, leaves, info))
        flat = flattening.FlatFunction(self.function, in_tree, info.func_name)
        if config.disable_jit.value and steps.computes(current.value):
            return self._step_by_step(region, flat, leaves, in_specs)
        try:
            return self._staged(region, flat, leaves, avals, in_specs, info)
        except ConcretizationTypeError:
            if not steps.computes(current.value):
                raise
        # Python looks at a value, which operation by operation is known.
        return self._step_by_step(region, flat, leaves, in_specs)

    def _with_static(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments; those that are not arrays and have the spec None are not leaves of it."""
        leaves, in_tree = tree.flatten(args)
        if all(map(_is_array, leaves)):
            return args
        specs = self._specs_by_leaf(args)
        held: tuple[Any, ...] = tree.unflatten(
            in_tree,
            [
                _Static(x) if spec is None and not _is_array(x) else x
                for x, spec in zip(leaves, specs, strict=True)
            ],
        )
        return held

    def _specs_by_leaf(self, args: tuple[Any, ...]) -> list[Any]:
        given = None if self.in_specs is INFER else self.in_specs
        return tree.broadcast_prefix(
            _as_tuple(given),
            args,
            is_leaf=_is_spec,
            user="shard_map",
            first="in_specs",
            second="the arguments",
            hint="" if isinstance(given, tuple) else "wrap in_specs in a tuple: (spec, ...)",
        )

    def _staged(
        self,
        region: Region,
        flat: flattening.FlatFunction,
        leaves: Values,
        avals: Avals,
        in_specs: Sequence[PartitionSpec],
        info: DebugInfo,
    ) -> Any:
        out_specs: list[PartitionSpec] = []

        def body(*blocks: Any) -> list[Any]:
            outs = flat(*blocks)
            out_specs[:] = self._out_specs(region, flat, outs)
            return [match(out, spec, region) for out, spec in zip(outs, out_specs, strict=True)]

        blocks = [region.block(aval, spec) for aval, spec in zip(avals, in_specs, strict=True)]
        with region.entered():
            jaxpr, consts = staging.stage(body, blocks, info)
            closed = ClosedJaxpr(passes.close_over_constants(jaxpr))
            all_specs = (*(_CONSTANT for _ in consts), *in_specs)
            if not region.check_vma or uniformity.asks_outside(closed.jaxpr):
                differing = [frozenset(spec.names()) for spec in all_specs]
                checks.check_untyped("shard_map", closed, differing, region.axes)
        outs = primitive.shard_map_p.bind_all(
            *consts,
            *leaves,
            jaxpr=closed,
            mesh=region.mesh,
            in_specs=all_specs,
            out_specs=tuple(out_specs),
            newly_manual_axes=region.axes,
            check_vma=region.check_vma,
        )
        return tree.unflatten(flat.out_tree, outs)

    def _step_by_step(
        self,
        region: Region,
        flat: flattening.FlatFunction,
        leaves: Values,
        in_specs: Sequence[PartitionSpec],
    ) -> Any:
        outs = steps.run(
            primitive.shard_map_p,
            region,
            flat,
            flat.name,
            leaves,
            in_specs,
            lambda blocks: self._out_specs(region, flat, blocks),
        )
        return tree.unflatten(flat.out_tree, outs)

    def _in_specs(
        self, region: Region, args: tuple[Any, ...], avals: Avals, info: DebugInfo
    ) -> list[PartitionSpec]:
        """A spec for each leaf of the arguments."""
        if self.in_specs is INFER:
            _check_types_tell(region)
        specs = [
            _inferred(region, aval) if spec is None else spec
            for aval, spec in zip(avals, self._specs_by_leaf(args), strict=True)
        ]
        for i, (aval, spec) in enumerate(zip(avals, specs, strict=True)):
            leaf = _Leaf(lambda: info.arg_names, i)
            _check_spec("in_specs", spec, region)
            if isinstance(aval, ShapedArray):
                _check_fits(info.func_name, leaf, "in_specs", spec, aval)
                _check_divides(info.func_name, leaf, spec, aval, region)
                _check_type(info.func_name, leaf, spec, aval, region)
        return specs

    def _out_specs(
        self, region: Region, flat: flattening.FlatFunction, outs: Values
    ) -> list[PartitionSpec]:
        """A spec for each leaf of the results."""
        specs = tree.broadcast_prefix(
            self.out_specs,
            tree.unflatten(flat.out_tree, outs),
            is_leaf=_is_spec,
            user="shard_map",
            first="out_specs",
            second="the results",
        )
        for i, (out, spec) in enumerate(zip(outs, specs, strict=True)):
            leaf = _Leaf(lambda: flattening.result_paths(flat.out_tree), i, "")
            _check_spec("out_specs", spec, region)
            aval = aval_of(out)
            if isinstance(aval, AbstractTodo):
                problem = f"{leaf} of {flat.name} has started only, and cannot be finished outside."
                fix = "return what .done() gives"
                error(TypeError, "shard_map", problem, got=str(aval), fix=fix)
            if isinstance(aval, ShapedArray):
                _check_fits(flat.name, leaf, "out_specs", spec, aval)
                if region.check_vma:
                    _check_same_everywhere(flat.name, leaf, spec, aval, region)
        return specs


_CONSTANT = PartitionSpec()


def _is_array(x: object) -> bool:
    return hasattr(x, "aval") or isinstance(x, (np.ndarray, np.generic))


class _Static(NamedTuple):
    """A node without leaves for an argument that is not an array, which it gives back."""

    value: Any


tree_registry.register_pytree_node(
    _Static, lambda static: ((), static.value), lambda value, _: value
)


class _Leaf:
    """A leaf of the arguments or the results; its name is found when a message shows it."""

    __slots__ = ("_index", "_kind", "_names")

    def __init__(
        self, names: Callable[[], Sequence[str] | None], index: int, kind: str = "the argument "
    ) -> None:
        self._names = names
        self._index = index
        self._kind = kind

    def __str__(self) -> str:
        names = self._names()
        return f"{self._kind}{names[self._index] if names else self._index}"


def _as_tuple(specs: object) -> Any:
    return tuple(specs) if isinstance(specs, list) else specs


def _is_spec(node: object) -> bool:
    return node is None or isinstance(node, PartitionSpec)


def _mesh_for(given: object) -> MeshAxes:
    """The mesh of a call: inside another `shard_map` the one in force, which must fit.

    Raises:
        TypeError: what is given is not a mesh.
        ValueError: there is none, or another one is in force.
    """
    if given is not None and not isinstance(given, MeshAxes):
        problem = "mesh must be a Mesh or an AbstractMesh."
        error(TypeError, "shard_map", problem, got=f"{given!r} of type {type(given).__name__}")
    around = meshes.get_abstract_mesh()
    if given is None:
        entered = around if not around.empty else contexts.mesh_of_arrays()
        concrete = contexts.current_devices_mesh()
        if concrete is not None and concrete.abstract_mesh is around:
            entered = concrete
        if entered is None:
            error(
                ValueError,
                "shard_map",
                "there is no mesh.",
                fix="mesh=minijax.make_mesh((8,), ('x',)), or call it inside "
                "`with minijax.set_mesh(mesh):`",
            )
        return entered
    if around.manual_axes:
        if around.shape_tuple != given.shape_tuple:
            problem = "its mesh is not that of the shard_map around it."
            fix = "leave mesh= away: the one in force is used"
            error(ValueError, "shard_map", problem, got=f"{given}\ninside {around}", fix=fix)
        return around
    return given


def _mesh_of_arguments(mesh: AbstractMesh, leaves: Values, info: DebugInfo) -> MeshAxes:
    """The mesh with devices that stands for an abstract one, where nothing is being traced.

    Raises:
        ValueError: no argument has devices in a mesh, or one has a mesh of another shape.
    """
    context = contexts.current_devices_mesh()
    if context is not None and context.shape_tuple == mesh.shape_tuple:
        return context
    names = info.arg_names or [f"argument {i}" for i in range(len(leaves))]
    found: Any = None
    for name, x in zip(names, leaves, strict=True):
        sharding = getattr(x, "sharding", None)
        if not isinstance(sharding, NamedSharding):
            error(
                ValueError,
                "shard_map",
                f"an abstract mesh takes its devices from the arguments, and {name} has no mesh.",
                got=f"{type(x).__name__}: {aval_of(x)}, on {sharding or 'no device'}",
                expected="arrays with a NamedSharding",
                fix="minijax.device_put(x, NamedSharding(mesh, spec)) first, call it inside "
                "`with minijax.set_mesh(mesh):`, or give it a Mesh",
            )
        if sharding.mesh.shape_tuple != mesh.shape_tuple:
            problem = f"the mesh of the argument {name} has another shape than the mesh given."
            got = f"{aval_of(x)} on {sharding.mesh}"
            error(ValueError, "shard_map", problem, got=got, expected=str(mesh))
        found = found or sharding.mesh
    if found is None:
        problem = "an abstract mesh takes its devices from the arguments, and there are none."
        fix = "call it inside `with minijax.set_mesh(mesh):`, or give it a Mesh"
        error(ValueError, "shard_map", problem, got=str(mesh), fix=fix)
    return found


def _check_types_tell(region: Region) -> None:
    """Refuses to do without in_specs where an axis is not Explicit."""
    untold = [n for n in region.ordered(region.axes) if region.outer.axis_type(n) is AxisType.Auto]
    if untold:
        error(
            TypeError,
            "shard_map",
            f"in_specs is missing: the types of arguments do not tell how they are split over "
            f"{meshes.names_text(untold)}, of type Auto.",
            expected="a PartitionSpec for each argument",
            fix="in_specs=P(...), or a mesh with Explicit axes",
        )


def _inferred(region: Region, aval: AbstractValue) -> PartitionSpec:
    """The spec that a type gives."""
    if aval.split is None:
        return PartitionSpec()
    entries = [tuple(n for n in names_of(e) if n in region.axes) or None for e in aval.split.spec]
    return PartitionSpec(*entries)


def _check_spec(argument: str, spec: object, region: Region) -> None:
    """Refuses what is not a spec, and specs of axes that do not become manual."""
    if not isinstance(spec, PartitionSpec):
        problem = f"{argument} must be a PartitionSpec, or a tree prefix of such."
        got = f"{spec!r} of type {type(spec).__name__}"
        fix = "P() for values that every device gets as a whole"
        if isinstance(spec, str):
            fix = f"P({spec!r}), which splits the first dimension over {spec!r}"
        error(TypeError, "shard_map", problem, got=got, fix=fix)
    seen = [*spec.names(), *spec.unreduced, *spec.reduced]
    if len(set(seen)) < len(seen):
        twice = [name for name, count in Counter(seen).items() if count > 1]
        problem = f"{argument} names {meshes.names_text(twice)} twice."
        expected = "each mesh axis at most once: it can split one dimension only"
        error(DuplicateSpecError, "shard_map", problem, got=repr(spec), expected=expected)
    if UNCONSTRAINED in spec:
        problem = f"{argument} must say for each dimension how it is split."
        fix = "None in place of UNCONSTRAINED"
        error(ValueError, "shard_map", problem, got=repr(spec), fix=fix)
    strange = [n for n in seen if n not in region.axes]
    if strange:
        raise ValueError(_strange_axes_text(argument, spec, strange, region))


def _strange_axes_text(
    argument: str, spec: PartitionSpec, strange: Sequence[Any], region: Region
) -> str:
    """What to say about axes in a spec that do not become manual: why they do not."""
    names = meshes.names_text(strange)
    if any(n not in region.outer.axis_names for n in strange):
        problem = f"{argument} names {names}, which the mesh does not have."
        fix = "a name of the mesh, or a mesh with an axis of this name"
    elif any(n in region.outer.manual_axes for n in strange):
        problem = f"{argument} names {names}, over which the shard_map around has split values."
        fix = "leave the axis away here: what comes in are blocks already"
    else:
        problem = f"{argument} names {names}, which the function is not written per device of."
        fix = "name the axis in axis_names, or leave it away here: the compiler splits over it"
    own = region.ordered(region.axes)
    return message(
        "shard_map",
        problem,
        got=f"{spec!r} on {region.outer}",
        expected=f"axes among {meshes.names_text(own)}" if own else "no axis: none is left",
        fix=fix,
    )


def _check_fits(name: str, leaf: _Leaf, argument: str, spec: PartitionSpec, aval: Any) -> None:
    if len(spec) > aval.ndim:
        error(
            ValueError,
            "shard_map",
            f"{argument} has {len(spec)} entries for {leaf} of {name}, which has "
            f"{aval.ndim} dimension(s).",
            got=f"{spec!r} for {aval}",
            expected=f"at most {aval.ndim} entries",
            fix="P() for a scalar" if aval.ndim == 0 else "a shorter spec",
        )


def _check_divides(name: str, leaf: _Leaf, spec: PartitionSpec, aval: Any, region: Region) -> None:
    for dim, (size, names) in enumerate(zip(aval.shape, spec.dims(aval.ndim), strict=True)):
        parts = region.size(names)
        if size % parts:
            sizes = ", ".join(f"{n!r} of size {region.outer.axis_size(n)}" for n in names)
            error(
                ValueError,
                "shard_map",
                f"dimension {dim} of {leaf} of {name} has size {size}, which "
                f"{parts} devices cannot share equally.",
                got=f"{aval} split by {spec!r}, over {sizes}",
                expected=f"a multiple of {parts}",
                fix="pad the dimension, or split another one",
            )


def _check_type(name: str, leaf: _Leaf, spec: PartitionSpec, aval: Any, region: Region) -> None:
    """Refuses a spec that is not how the argument's type says it is split."""
    if aval.split is None:
        return
    dims = spec.dims(aval.ndim)
    own = tuple(tuple(n for n in names_of(e) if n in region.axes) for e in aval.split.spec)
    explicit = frozenset(region.outer.explicit_axes)
    wanted = tuple(tuple(n for n in names if n in explicit) for names in dims)
    if own != wanted:
        problem = f"{leaf} of {name} is split otherwise than in_specs says."
        fix = "sharding.reshard(x, spec) first, or leave in_specs away: types tell"
        error(ValueError, "shard_map", problem, got=f"{aval}", expected=repr(spec), fix=fix)


def _check_same_everywhere(
    name: str, leaf: _Leaf, spec: PartitionSpec, aval: ShapedArray, region: Region
) -> None:
    """Refuses a result that may differ along an axis over which its spec says it does not."""
    kind = vma.of(aval)
    wrong = region.ordered((kind.varying & region.axes) - frozenset(spec.names()) - spec.unreduced)
    if wrong:
        shown = meshes.names_text(wrong)
        error(
            ValueError,
            "shard_map",
            f"{leaf} of {name} may differ between devices along {shown}, but out_specs says "
            "that it is the same there.",
            got=f"{aval}, out_specs {spec!r} on {region.outer}",
            expected=f"a value that does not vary over {shown}, or a spec that names it",
            fix=f"lax.psum, lax.pmax or lax.all_gather(to='invarying') over {shown}; name it "
            "in out_specs; or check_vma=False to take the first device's value unchecked",
            more="",
        )
    sums = region.ordered((kind.unreduced & region.axes) - spec.unreduced)
    if sums:
        error(
            ValueError,
            "shard_map",
            f"{leaf} of {name} is unreduced over {meshes.names_text(sums)}: devices hold summands.",
            got=f"{aval}, out_specs {spec!r}",
            fix="lax.psum first, or P(..., unreduced={...}) in out_specs",
            more="",
        )
    whole = region.ordered((kind.reduced & region.axes) - spec.reduced)
    if whole:
        error(
            ValueError,
            "shard_map",
            f"{leaf} of {name} is reduced over {meshes.names_text(whole)}, which out_specs "
            "does not say.",
            got=f"{aval}, out_specs {spec!r}",
            fix="return the value from before the cast, or P(..., reduced={...}) in out_specs",
        )
