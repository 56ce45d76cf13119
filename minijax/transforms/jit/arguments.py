"""The arguments of a jitted function: static, donated, placed.

Input: what the user says by position or by name, and tree prefixes of shardings.  Output: both
positions and names, flags of flat arguments, and one placement, or None, for each flat value.
`jit.py` asks once when a function is wrapped, and with each new signature.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from minijax.core import source, tree, tree_errors
from minijax.core.cache import Cache
from minijax.core.errors import NoMeshError, error, warn
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.meshes import PartitionSpec
from minijax.core.native import Device
from minijax.core.operators import Avals, Value, Values
from minijax.core.trace import Tracer
from minijax.interpreters import flattening, staging
from minijax.interpreters.reshard import reshard_to
from minijax.lax.shardings import sharding_constraint_p
from minijax.lowering.call_plan import ProgramOptions, RequestedPlacement
from minijax.runtime import client
from minijax.sharding import contexts, rules
from minijax.sharding.base import Format, Layout, Sharding
from minijax.sharding.named import (
    UNSPECIFIED,
    NamedSharding,
    SingleDeviceSharding,
    has_open_dims,
    is_auto,
)

if TYPE_CHECKING:
    from minijax.core.aval import ShapedArray
    from minijax.core.native import PyTreeDef


class JitOptions(TypedDict, total=False):
    """The options of `jit`, as types."""

    in_shardings: object
    out_shardings: object
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Iterable[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Iterable[str] | None
    keep_unused: bool
    device: Device | None
    backend: str | None
    inline: bool
    compiler_options: dict[str, str | bool] | None


class JitSettings(NamedTuple):
    """The options of `jit` in normal form: hashable, and part of the keys of staged programs.

    Attributes:
        more: the options of another transformation that is called and staged like `jit`.
    """

    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    donate_argnames: tuple[str, ...] = ()
    keep_unused: bool = False
    inline: bool = False
    device: Device | None = None
    compiler_options: tuple[tuple[str, object], ...] = ()
    in_shardings: PlacementTree | None = None
    out_shardings: PlacementTree | None = None
    more: object = None


def settings_of(
    function: Callable[..., Any],
    *,
    backend: str | None,
    compiler_options: dict[str, Any] | None,
    device: Device | None,
    donate_argnames: str | Iterable[str] | None,
    donate_argnums: int | Sequence[int] | None,
    in_shardings: object,
    inline: bool,
    keep_unused: bool,
    out_shardings: object,
    static_argnames: str | Iterable[str] | None,
    static_argnums: int | Sequence[int] | None,
) -> JitSettings:
    """Checks the options of `jit` and brings them into normal form.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: options contradict one another, or name a parameter that does not exist.
    """
    device = device_of(device, backend, is_placed=in_shardings not in (None, UNSPECIFIED))
    static_nums, static_names = resolve_names(function, static_argnums, static_argnames, "static")
    donate_nums, donate_names = resolve_names(function, donate_argnums, donate_argnames, "donate")
    check_not_both(function, static_names or static_nums, donate_names or donate_nums)
    return JitSettings(
        static_nums,
        static_names,
        donate_nums,
        donate_names,
        keep_unused,
        inline,
        device,
        tuple(sorted((compiler_options or {}).items())),
        PlacementTree.of("in_shardings", in_shardings),
        PlacementTree.of("out_shardings", out_shardings),
    )


def per_value(
    settings: JitSettings,
    name: str,
    closed: ClosedJaxpr,
    num_outer: int,
    donated: tuple[bool, ...],
    trees: tuple[PyTreeDef, PyTreeDef],
) -> tuple[ProgramOptions, RequestedPlacement]:
    """Spreads the options of `jit` over the flat arguments and results of a staged program.

    Args:
        settings: the options.
        name: the function's name.
        closed: the program.
        num_outer: how many of its first arguments are values that the function closes over.
        donated: for each other argument whether it is donated; empty if none is.
        trees: those of the arguments, (args, kwargs), and of the result.

    Raises:
        ValueError: a sharding or a layout does not fit its value.
    """
    in_tree, out_tree = trees
    in_avals, out_avals = closed.in_avals[num_outer:], closed.out_avals
    info = closed.jaxpr.debug_info
    in_shardings = in_layouts = out_shardings = out_layouts = ()
    if settings.in_shardings is not None:
        formats = settings.in_shardings.for_arguments(name, in_tree)
        in_shardings, in_layouts = without_layouts(formats, in_avals)
        check(name, "in_shardings", in_shardings, in_avals, info.arg_names)
    if settings.out_shardings is not None:
        formats = settings.out_shardings.for_results(name, out_tree)
        out_shardings, out_layouts = without_layouts(formats, out_avals)
        check(name, "out_shardings", out_shardings, out_avals, info.result_paths)
    unspecified = (None,) * num_outer
    options = ProgramOptions(
        name,
        keep_unused=settings.keep_unused,
        donated=(False,) * num_outer + donated if any(donated) else (),
        compiler_options=settings.compiler_options,
        in_layouts=in_layouts and unspecified + in_layouts,
        out_layouts=out_layouts,
    )
    requested = RequestedPlacement(
        in_shardings and unspecified + in_shardings, out_shardings, settings.device
    )
    return options, requested


def split_static(
    name: str, settings: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, list[int], tuple[Any, ...], dict[str, Any]]:
    """The static arguments; positions of the others; the others themselves."""
    static = {i + len(args) if i < 0 else i for i in settings.static_argnums}
    static_names = set(settings.static_argnames)
    positions = [i for i in range(len(args)) if i not in static]
    fixed_args = tuple((i, args[i]) for i in sorted(static) if i < len(args))
    fixed_kwargs = tuple((k, v) for k, v in sorted(kwargs.items()) if k in static_names)
    for where, value in (*fixed_args, *fixed_kwargs):
        check_hashable(name, where, value)
    dyn_kwargs = {k: v for k, v in kwargs.items() if k not in static_names}
    statics = tuple((where, type(value), value) for where, value in (*fixed_args, *fixed_kwargs))
    return statics, positions, tuple(args[i] for i in positions), dyn_kwargs


def donated_leaves(
    settings: Any, in_tree: Any, positions: Sequence[int] | None, num_args: int
) -> tuple[bool, ...]:
    """For each flat argument whether results may take its memory; empty if of none.

    Args:
        settings: what the user asked for.
        in_tree: the tree of the dynamic arguments.
        positions: which positional arguments these are; None for all.
        num_args: how many positional arguments the call has, with static ones.
    """
    if not (settings.donate_argnums or settings.donate_argnames):
        return ()
    args_tree, kwargs_tree = in_tree.children()
    places = range(num_args) if positions is None else positions
    wanted = {i + num_args if i < 0 else i for i in settings.donate_argnums}
    flags: list[bool] = []
    for place, subtree in zip(places, args_tree.children(), strict=True):
        flags += [place in wanted] * subtree.num_leaves
    _, names = kwargs_tree.node_data() or (None, ())
    for name, subtree in zip(names or (), kwargs_tree.children(), strict=True):
        flags += [name in settings.donate_argnames] * subtree.num_leaves
    return tuple(flags)


def with_statics(
    function: Callable[..., Any], statics: Any, positions: Sequence[int]
) -> Callable[..., Any]:
    """`function` of its dynamic arguments alone."""
    fixed = {where: value for where, _, value in statics if isinstance(where, int)}
    fixed_kwargs = {where: value for where, _, value in statics if isinstance(where, str)}

    def call(*args: Any, **kwargs: Any) -> Any:
        given = iter(args)
        total = len(args) + len(fixed)
        full = [fixed[i] if i in fixed else next(given) for i in range(total)]
        return function(*full, **fixed_kwargs, **kwargs)

    return call


def check_hashable(name: str, where: object, value: object) -> None:
    """Refuses a static argument that cannot be part of a cache's key.

    Raises:
        ValueError: it has no hash.
    """
    try:
        hash(value)
    except TypeError:
        problem = f"the static argument {where!r} is not hashable."
        got = f"{value!r} of type {type(value).__name__}"
        expected = "a hashable value: its hash is part of the key of the compiled program"
        fix = "pass a tuple in place of a list or array, or do not mark it as static"
        if isinstance(value, Tracer):
            problem = f"the static argument {where!r} is a traced value, which has no hash."
            got = f"{value.aval}, {value.origin()}"
            fix = f"a known value, held by a function around it: lambda x: {name}(x, 3)"
        error(ValueError, name, problem, got=got, expected=expected, fix=fix, cause=None)


def warn_of_useless_donation(
    name: str, avals: Avals, donated: Sequence[bool], outvars: Sequence[Any]
) -> None:
    """Warns of donated arguments that no result can use."""
    if not any(donated):
        return
    free = [(v.aval.shape, v.aval.dtype) for v in outvars]
    useless = []
    for aval, given in zip(avals, donated, strict=True):
        if given and (aval.shape, aval.dtype) in free:
            free.remove((aval.shape, aval.dtype))
        elif given:
            useless.append(aval)
    if useless:
        problem = f"{name} has no result that they fit, so their memory cannot be reused."
        got = ", ".join(a.str_short() for a in useless)
        fix = "donate only what a result has the shape and dtype of"
        warn(UserWarning, "Some donated buffers were not usable", problem, got=got, fix=fix)


def _as_tuple(value: object) -> tuple[Any, ...]:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _check_kinds(
    transformation: str, purpose: str, nums: tuple[Any, ...], names: tuple[Any, ...]
) -> None:
    if not all(hasattr(i, "__index__") for i in nums):
        problem = f"{purpose}_argnums must be integers."
        got, fix = ", ".join(map(repr, nums)), f"name parameters with {purpose}_argnames"
        error(TypeError, transformation, problem, got=got, fix=fix)
    if not all(isinstance(name, str) for name in names):
        problem = f"{purpose}_argnames must be strings."
        got, fix = ", ".join(map(repr, names)), f"number parameters with {purpose}_argnums"
        error(TypeError, transformation, problem, got=got, fix=fix)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def from_the_front(function: Any, nums: tuple[int, ...]) -> tuple[int, ...]:
    """Positions of parameters, where those that count from the end count from the front.

    Which parameter is the last must not depend on how many arguments a call passes by position.
    Of a function with `*args` the call alone decides, and they stay as they are.
    """
    try:
        kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return nums
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return nums
    count = sum(kind in _POSITIONAL for kind in kinds)
    return tuple(i + count if -count <= i < 0 else i for i in nums)


def resolve_names(
    function: Any, argnums: Any, argnames: Any, purpose: str, transformation: str = "jit"
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the same parameters, each found from the other by the signature.

    Raises:
        TypeError: a position is not an integer, or a name is not a string.
        ValueError: the function has no such parameter.
    """
    nums, names = _as_tuple(argnums), _as_tuple(argnames)
    if not nums and not names:
        return (), ()
    _check_kinds(transformation, purpose, nums, names)
    nums = tuple(map(operator.index, nums))
    try:
        parameters = list(inspect.signature(source.unwrapped(function)).parameters.values())
    except (TypeError, ValueError):
        return nums, names
    positional = [p.name for p in parameters if p.kind in _POSITIONAL]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    keywords = any(p.kind is p.VAR_KEYWORD for p in parameters)
    all_names = {p.name for p in parameters}
    for i in nums:
        if not variadic and not -len(positional) <= i < len(positional):
            got = f"{flattening.function_name(function)} with positional parameters {positional}"
            error(ValueError, transformation, f"{purpose}_argnums {i} is out of range.", got=got)
    for name in names:
        if any(p.name == name and p.kind is p.POSITIONAL_ONLY for p in parameters):
            problem = f"{purpose}_argnames names a parameter that goes by position only: {name!r}."
            got = f"{flattening.function_name(function)} with parameters {sorted(all_names)}"
            fix = f"{purpose}_argnums={positional.index(name)}"
            error(ValueError, transformation, problem, got=got, fix=fix)
        if name not in all_names and not keywords:
            error(
                ValueError,
                transformation,
                f"{purpose}_argnames names no parameter: {name!r}.",
                got=f"{flattening.function_name(function)} with parameters {sorted(all_names)}",
            )
    nums = from_the_front(function, nums)
    if not names and nums:
        named = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        names = tuple(
            positional[i] for i in nums if 0 <= i < len(positional) and positional[i] in named
        )
    elif not nums and names:
        nums = tuple(i for i, n in enumerate(positional) if n in names)
    return nums, names


def check_not_both(fun: Any, static: tuple[Any, ...], donated: tuple[Any, ...]) -> None:
    """Refuses arguments that are static and donated.

    Raises:
        ValueError: there is one.
    """
    both = [x for x in static if x in donated]
    if both:
        problem = "an argument is both static and donated: static ones have no memory to give."
        got = f"{', '.join(map(repr, both))} of {flattening.function_name(fun)}"
        fix = "leave it out of donate_argnums and donate_argnames"
        error(ValueError, "jit", problem, got=got, fix=fix)


def device_of(device: Device | None, backend: str | None, *, is_placed: bool) -> Any:
    """The device that the arguments `device` and `backend` name, if any.

    Raises:
        AttributeError: `device` is none.
        ValueError: placements are given as well.
    """
    if is_placed and not (device is None and backend is None):
        problem = "takes in_shardings, or device or backend, not both."
        got = f"in_shardings, device={device!r}, backend={backend!r}"
        error(ValueError, "jit", problem, got=got, fix="say with in_shardings alone where to run")
    if backend is not None:
        return client.get_backend(backend).local_devices()[0]
    if device is not None and not hasattr(device, "platform"):
        error(
            AttributeError,
            "jit",
            "not a device.",
            got=f"device: {device!r} of type {type(device).__name__}",
            expected="one of minijax.devices()",
        )
    return device


class PlacementTree:
    """A tree prefix of placements; hashable, so that it may be part of a cache's key."""

    __slots__ = ("_hash", "given", "leaves", "name", "structure")

    def __init__(self, name: str, given: object) -> None:
        self.name = name
        self.given = given
        leaves, self.structure = tree.flatten(given, is_leaf=tree.is_none)
        self.leaves = tuple(_as_sharding(name, leaf) for leaf in leaves)
        self._hash = hash((self.leaves, self.structure))

    @classmethod
    def of(cls, name: str, given: object) -> PlacementTree | None:
        """Returns the tree of an argument of `jit`, or None if it is unspecified."""
        return None if given is UNSPECIFIED or given is None else cls(name, given)

    def for_arguments(self, function: str, in_tree: PyTreeDef) -> tuple[Any, ...]:
        """One placement for each flat argument.

        Raises:
            ValueError: there are keyword arguments, or the tree is not a prefix of the arguments.
        """
        args, kwargs = tree.unflatten(in_tree, [0] * in_tree.num_leaves)
        if kwargs:
            problem = "in_shardings speaks of positional arguments only."
            fix = "pass them by position"
            error(ValueError, function, problem, got=f"keyword arguments {sorted(kwargs)}", fix=fix)
        return self._spread(function, args, "args", "of the positional arguments that are traced")

    def for_results(self, function: str, out_tree: PyTreeDef) -> tuple[Any, ...]:
        """One placement for each flat result.

        Raises:
            ValueError: the tree is not a prefix of the results.
        """
        results = tree.unflatten(out_tree, [0] * out_tree.num_leaves)
        return self._spread(function, results, "result", "of the results")

    def _spread(self, function: str, whole: ShapedArray, name: str, what: str) -> tuple[Any, ...]:
        prefix = tree.unflatten(self.structure, list(self.leaves))
        if isinstance(whole, tuple) and isinstance(prefix, list):
            prefix = tuple(prefix)
        try:
            return tuple(tree.broadcast_prefix(prefix, whole, is_leaf=tree.is_none))
        except ValueError:
            pass
        leaves, full = tree.flatten(whole)
        structure = tree.structure(prefix, is_leaf=tree.is_none)
        raise tree_errors.mismatch_error(
            function,
            f"{self.name} is not a tree prefix {what}.",
            tree_errors.differences(structure, full, leaves, prefix=True),
            first=self.name,
            second=name,
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, PlacementTree)
            and self.leaves == other.leaves
            and self.structure == other.structure
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return repr(self.given)


def without_layouts(given: Sequence[Any], avals: Avals) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Placements, some of which may be a `Format`, as shardings and layouts; () for none.

    Raises:
        ValueError: a layout does not fit its value.
    """
    layouts = tuple(x.layout if isinstance(x, Format) else None for x in given)
    for layout, aval in zip(layouts, avals, strict=False):
        if isinstance(layout, Layout):
            layout.check_compatible_aval(aval.shape)
    places = tuple(x.sharding if isinstance(x, Format) else x for x in given)
    are_given = any(place is not None for place in places)
    return places if are_given else (), layouts if any(layouts) else ()


def _as_sharding(name: str, given: object) -> Any:
    if given is None or given is UNSPECIFIED or isinstance(given, Format):
        return given if isinstance(given, Format) else None
    if isinstance(given, (Sharding, PartitionSpec)):
        spec = given.spec if isinstance(given, NamedSharding) else given
        if isinstance(spec, PartitionSpec) and has_open_dims(spec):
            error(
                ValueError,
                "jit",
                f"{name} must not leave dimensions UNCONSTRAINED.",
                got=str(given),
                fix="None in place of the placement leaves all of it to the compiler; "
                "with_sharding_constraint inside the function leaves single dimensions",
            )
        return given
    if is_auto(given):
        return given
    if hasattr(given, "device_kind"):
        return SingleDeviceSharding(given)
    problem = f"{name} holds something that is no placement."
    got = f"{given!r} of type {type(given).__name__}"
    expected = "shardings, PartitionSpecs under a mesh, or None"
    error(TypeError, "jit", problem, got=got, expected=expected)


def check(
    function: str, name: str, shardings: Sequence[Any], avals: Avals, names: Sequence[str] | None
) -> None:
    """Refuses placements that do not fit their values.

    Raises:
        ValueError: a spec is longer than the rank, or a dimension cannot be cut into equal parts.
    """
    for i, (given, aval) in enumerate(zip(shardings, avals, strict=False)):
        if given is None or is_auto(given) or not hasattr(aval, "shape"):
            continue
        try:
            _resolved(given, name).shard_shape(aval.shape)
        except NoMeshError:
            raise
        except ValueError as error:
            what = names[i] if names is not None and i < len(names) else f"value {i}"
            raise type(error)(f"{function}: {name} of {what}: {error}") from None


_resolutions = Cache(
    "resolved shardings",
    "requested shardings whose specs refer to the active mesh",
    key="the active mesh",
    owner="jaxpr",
)


def resolve(closed: ClosedJaxpr, requested: RequestedPlacement) -> RequestedPlacement:
    """Resolves the `PartitionSpec`s among requested shardings on the active mesh.

    Raises:
        NoMeshError: there is a `PartitionSpec`, and no mesh is active.
    """
    if not (requested.in_shardings or requested.out_shardings):
        return requested

    def make() -> RequestedPlacement:
        return requested._replace(
            in_shardings=tuple(_resolved(s, "in_shardings") for s in requested.in_shardings),
            out_shardings=tuple(_resolved(s, "out_shardings") for s in requested.out_shardings),
        )

    return _resolutions.of(closed, contexts.mesh_of_arrays(), make)


def _resolved(sharding: object, name: str) -> Any:
    if isinstance(sharding, PartitionSpec):
        return contexts.resolve(sharding, f"jit's {name}")
    return sharding


def constrained(closed: ClosedJaxpr, requested: RequestedPlacement) -> ClosedJaxpr:
    """Returns a program whose equations constrain its arguments and results as requested.

    Other programs can then call and transform it like any other.
    """
    ins = tuple(_inside(s, "in_shardings") for s in requested.in_shardings)
    outs = tuple(_inside(s, "out_shardings") for s in requested.out_shardings)
    if not any([*ins, *outs]):
        return closed

    def function(*args: Any) -> list[Any]:
        results = staging.eval_closed_jaxpr(closed, *_placed(args, ins))
        return _placed(results, outs)

    def make() -> ClosedJaxpr:
        return staging.stage_closed(function, closed.in_avals, closed.jaxpr.debug_info)

    made: ClosedJaxpr = closed.remember(("constrained", ins, outs), make)
    return made


def _placed(values: Values, shardings: Sequence[Any]) -> list[Any]:
    if not shardings:
        return list(values)
    return [x if s is None else _at(x, s) for x, s in zip(values, shardings, strict=True)]


def _at(x: Value, sharding: NamedSharding) -> Any:
    x = sharding_constraint_p.bind(x, sharding=sharding)
    if sharding.mesh.explicit_axes:
        x = reshard_to(x, rules.resolve(sharding, "jit"))
    return x


def _inside(sharding: object, name: str) -> Any:
    """A placement as equations hold it; None where they need not say it."""
    if isinstance(sharding, PartitionSpec):
        return contexts.resolve_for_tracing(sharding, f"jit's {name}")
    return sharding if isinstance(sharding, NamedSharding) else None
