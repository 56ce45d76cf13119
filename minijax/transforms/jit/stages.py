"""Ahead-of-time stages: a function traced, lowered, compiled, each to be looked at.

Input: a jitted function and the types of its arguments.  Output: `Traced`, `Lowered`,
`Compiled`.  Mirrors jax.stages.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    NamedTuple,
    NoReturn,
    ParamSpec,
    Protocol,
    TypeVar,
    overload,
    runtime_checkable,
)

import numpy as np

from minijax.core import deferral, dtypes, source, tree, tree_errors
from minijax.core.aval import (
    AbstractValue,
    ShapedArray,
    Typed,
    aval_handlers,
    aval_of,
    canonicalize_shape,
)
from minijax.core.check import same_type
from minijax.core.errors import NoMeshError, error
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo
from minijax.core.meshes import PartitionSpec
from minijax.core.operators import Values
from minijax.core.refs import AbstractRef
from minijax.core.sequences import ByValue
from minijax.core.trace import Tracer, current, leaked
from minijax.interpreters import discharge
from minijax.lowering import compilation, device_assignment, eager, program
from minijax.lowering.call_plan import (
    CallPlan,
    Placeholder,
    ProgramOptions,
    Replicated,
    RequestedPlacement,
)
from minijax.lowering.lowered import LoweredProgram
from minijax.runtime import client, in_flight
from minijax.runtime.array import explain_deleted, is_array
from minijax.runtime.compile import computation, hlo_text, module_costs
from minijax.runtime.execute import Executable
from minijax.sharding import contexts, named, rules
from minijax.sharding.base import Format, Layout, Sharding
from minijax.sharding.named import NamedSharding
from minijax.transforms.jit import arguments

if TYPE_CHECKING:
    from minijax.core.native import PyTreeDef

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

CompilerOptions = dict[str, str | bool]
"""Fields of XLA's DebugOptions by name.  Mirrors jax.stages."""


@runtime_checkable
class Wrapped(Protocol):
    """What `jit` returns: a function that can be staged and lowered.

    Example:
        >>> f: jax.stages.Wrapped = jax.jit(lambda x: x + 1)
        >>> f.trace(1).jaxpr
        { lambda ; a:i32[]. let b:i32[] = add a 1:i32[] in (b,) }
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function."""

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Stages the function for the types of its arguments."""

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lowers the function for the types of its arguments."""


class JitWrapped(Wrapped, Protocol[P, R_co]):
    """What a type checker knows of a jitted function: its parameters, its result, its stages.

    It may be called as the function may, which is what editors show, and with all that becomes an
    array on the way in: NumPy's arrays, numbers, trees of both.
    """

    @property
    def __name__(self) -> str: ...

    @property
    def __wrapped__(self) -> Callable[P, R_co]: ...

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> R_co: ...

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results, without computing them."""

    def clear_cache(self) -> None:
        """Forgets what was compiled."""


_NO_VALUES = "eval_shape, trace and lower take descriptions; calls need arrays"


@source.boundaries()
class ShapeDtypeStruct(ByValue):
    """The shape and dtype of an array that need not exist.

    Args:
        shape: the shape.
        dtype: the dtype.
        sharding: how the array would be placed: a sharding, a `Format`, or a `PartitionSpec` for
            the mesh in force.
        weak_type: whether the dtype gives way to that of other operands.
        is_ref: whether it stands for a reference to such an array.

    Raises:
        ValueError: `dtype` is None, or `sharding` is not a sharding or needs a larger rank.
        TypeError: `sharding` is a `PartitionSpec` and no mesh is in force.

    Example:
        >>> x = jax.ShapeDtypeStruct((1_000_000, 1_000_000), jnp.float32)
        >>> jax.eval_shape(lambda x: x.sum(axis=0), x)
        ShapeDtypeStruct(shape=(1000000,), dtype=float32)
    """

    __slots__ = ("_layout", "dtype", "is_ref", "shape", "sharding", "weak_type")

    def __init__(
        self,
        shape: object,
        dtype: Any,
        *,
        sharding: object = None,
        weak_type: bool = False,
        is_ref: bool = False,
    ) -> None:
        if dtype is None:
            error(ValueError, "ShapeDtypeStruct", "dtype must be given.", got="None")
        self.shape = canonicalize_shape(shape)
        canonical = dtypes.canonicalize_dtype(dtype)
        # As asked for, also where x64 is off: results of foreign functions have what they have.
        self.dtype = canonical if dtypes.is_extended(canonical) else np.dtype(dtype)
        self._layout = None
        if isinstance(sharding, Format):
            self._layout, sharding = sharding.layout, sharding.sharding
        self.sharding = None if sharding is None else _sharding_of(sharding, len(self.shape))
        self.weak_type = weak_type
        self.is_ref = is_ref

    @staticmethod
    def like(x: Any) -> ShapeDtypeStruct:
        """The description of a value: its type, and its sharding where it was given one."""
        placed = getattr(x, "sharding", None) if getattr(x, "committed", True) else None
        return struct_of(aval_of(x), placed)

    @property
    def format(self) -> Format:
        """How the array would lie in memory, and where."""
        return Format(self._layout, self.sharding)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def aval(self) -> Any:
        """The type."""
        memory, dtype = getattr(self.sharding, "special_memory_kind", None), self.dtype
        dtype = dtypes.canonicalize_dtype(dtype)
        aval = ShapedArray(self.shape, dtype, self.weak_type, memory_kind=memory)
        if isinstance(self.sharding, NamedSharding) and self.sharding.mesh.explicit_axes:
            aval = rules.typed_aval(aval, self.sharding)
        return AbstractRef(aval) if self.is_ref else aval

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """This description with some facts replaced."""
        facts = dict(zip(self.__slots__, self._facts(), strict=True))
        del facts["_layout"]
        return ShapeDtypeStruct(**{**facts, "sharding": self._layout and self.format, **changes})

    def __array__(self, *_: object, **__: object) -> NoReturn:
        problem, fix = "it describes an array and has no values.", _NO_VALUES
        error(TypeError, "ShapeDtypeStruct", problem, got=repr(self), fix=fix)

    def __len__(self) -> int:
        return len(self.aval)

    def __repr__(self) -> str:
        placed = "" if self.sharding is None else f", sharding={self.sharding}"
        flags = "".join(f", {x}=True" for x in ("weak_type", "is_ref") if getattr(self, x))
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{placed}{flags})"


def _sharding_of(given: object, ndim: int) -> Sharding:
    if isinstance(given, PartitionSpec):
        try:
            given = contexts.resolve(given, "ShapeDtypeStruct")
        except NoMeshError as caught:
            raise TypeError(str(caught)) from None
    if not isinstance(given, Sharding):
        problem = "sharding is no placement."
        got = f"{given!r} of type {type(given).__name__}"
        expected = "a Sharding, a PartitionSpec under a mesh, or None"
        error(ValueError, "ShapeDtypeStruct", problem, got=got, expected=expected)
    given.check_rank(ndim)
    return given


aval_handlers[ShapeDtypeStruct] = lambda x: x.aval
aval_handlers[ShapedArray] = lambda x: x


def struct_of(aval: AbstractValue, sharding: object = None) -> Any:
    """A type as a `ShapeDtypeStruct`, placed so if not as it says; types of tokens as they are."""
    if not isinstance(aval, ShapedArray):
        return aval
    return ShapeDtypeStruct(
        aval.shape, aval.dtype, sharding=sharding or aval.split, weak_type=aval.weak_type
    )


def check_values(name: str, leaves: Values, info: DebugInfo) -> None:
    """Checks that the arguments of a call are values that it can use.

    Raises:
        TypeError: one is a description of an array.
        UnexpectedTracerError: one is a tracer, although nothing is being traced: it leaked.
    """
    for i, x in enumerate(leaves):
        if isinstance(x, Tracer) and current.value is eager.EAGER:
            raise leaked(x)
        if isinstance(x, (ShapeDtypeStruct, ShapedArray)):
            names = info.arg_names or ()
            error(
                TypeError,
                name.lstrip("_"),
                f"argument {names[i] if i < len(names) else i} describes an array and is none.",
                got=repr(x),
                fix=_NO_VALUES,
            )


def result_structs(closed: ClosedJaxpr, requested: RequestedPlacement, out_tree: PyTreeDef) -> Any:
    """Returns a tree of `ShapeDtypeStruct`s of a program's results before it is compiled.

    They have the shardings that were requested.
    """
    out_avals = closed.out_avals
    requests = requested.out_shardings or (None,) * len(out_avals)
    shardings = [s if isinstance(s, Sharding) else None for s in requests]
    return tree.unflatten(out_tree, list(map(struct_of, out_avals, shardings)))


class ArgInfo(Typed):
    """What is known about one argument of a lowered program.

    Example:
        >>> lowered = jax.jit(lambda x: x + 1, donate_argnums=0).lower(jnp.ones(3))
        >>> lowered.args_info[0]
        (ArgInfo(aval=ShapedArray(float32[3]), donated=True),)
    """

    __slots__ = ("aval", "donated")

    def __init__(self, aval: AbstractValue, donated: bool) -> None:
        self.aval = aval
        self.donated = donated

    def __repr__(self) -> str:
        return f"ArgInfo(aval={self.aval!r}, donated={self.donated})"


class Staged(NamedTuple):
    """A function staged for one signature.

    Attributes:
        closed: the program.
        outer: the traced values that the function closes over, which are its first arguments.
        out_tree: the tree of the result.
        options: how it is compiled.
        requested: where the user wants it to run.
        inline: whether a call inside another traced function is inlined.
        takes_references: whether arguments are references, which have rules of their own.
        more: facts that another transformation keeps about the program.
    """

    closed: ClosedJaxpr
    outer: list[Any]
    out_tree: PyTreeDef
    options: ProgramOptions
    requested: RequestedPlacement
    inline: bool
    takes_references: bool
    more: Any = None

    @property
    def resolved_request(self) -> RequestedPlacement:
        """Where the user wants it to run, with `PartitionSpec`s resolved on the active mesh."""
        return arguments.resolve(self.closed, self.requested)


class _Stage:
    """What the stages share: trees and types of arguments and results."""

    _repr_html_ = deferral.shown

    def __init__(self, staged: Staged, in_tree: PyTreeDef) -> None:
        self._staged = staged
        self._closed, self._outer, self._options = staged.closed, staged.outer, staged.options
        self._requested = staged.requested
        self._in_avals = self._closed.in_avals[len(self._outer) :]
        self.in_tree = in_tree
        self.out_tree = staged.out_tree

    @property
    def fun_name(self) -> str:
        """The function's name."""
        return self._options.name

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, as the tree of (args, kwargs)."""
        return tree.unflatten(self.in_tree, self._in_avals)

    @property
    def args_info(self) -> Any:
        """What is known about each argument, as the tree of (args, kwargs)."""
        donated = self._options.donated[len(self._outer) :] or (False,) * len(self._in_avals)
        return tree.unflatten(self.in_tree, list(map(ArgInfo, self._in_avals, donated)))

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Which flat arguments give their memory away."""
        return tuple(i for i, given in enumerate(self._options.donated) if given)

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the results, and their placements where known, as their tree."""
        return result_structs(self._closed, self._requested, self.out_tree)

    @property
    def out_avals(self) -> Any:
        """The types of the results, as their tree."""
        return tree.unflatten(self.out_tree, self._closed.out_avals)


@source.boundaries("lower")
class Traced(_Stage):
    """A function staged to a jaxpr for arguments of certain types.

    Example:
        >>> traced = jax.jit(lambda x: 2 * x).trace(jax.ShapeDtypeStruct((3,), jnp.float32))
        >>> traced.jaxpr
        { lambda ; a:f32[3]. let b:f32[3] = mul 2.0:f32[] a in (b,) }
    """

    def __init__(self, staged: Staged, in_tree: PyTreeDef, args: Values) -> None:
        super().__init__(staged, in_tree)
        given = [x.sharding if isinstance(x, ShapeDtypeStruct) else None for x in args]
        names = self._closed.jaxpr.debug_info.arg_names
        arguments.check(self.fun_name, "the sharding", given, self._in_avals, names)
        layouts = [x._layout if isinstance(x, ShapeDtypeStruct) else None for x in args]
        if any(layouts) and not self._options.in_layouts:
            every = (*[None] * len(self._outer), *layouts)
            self._options = self._options._replace(in_layouts=every)
        self._args = [
            *self._outer,
            *(x if s is None else Placeholder(s) for x, s in zip(args, given, strict=True)),
        ]

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The closed jaxpr."""
        return self._closed

    def check_closes_over_no_tracers(self) -> None:
        """Refuses to lower what needs values that are being traced.

        Raises:
            ValueError: the function closes over one.
        """
        if any(isinstance(x, Tracer) for x in self._outer):
            problem = "cannot be lowered: it closes over traced values."
            error(ValueError, self.fun_name, problem, fix="pass them as arguments")

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """Lowers to StableHLO, for the platform of the arguments or for the ones named.

        Raises:
            ValueError: the function closes over values that are being traced.
        """
        self.check_closes_over_no_tracers()
        pure, written = discharge.discharge_jaxpr(self._closed)
        call = pure, self._args, self._options, self._requested
        used = program.used_arguments(pure, self._options)
        plan = None
        abstract = device_assignment.plan_without_devices(*call, used)
        if abstract is None:
            plan = device_assignment.plan_call(*call, used)
            abstract = plan.abstract
        if lowering_platforms:
            abstract = abstract._replace(platform=lowering_platforms[0])
        return Lowered(self, program.lower(pure, abstract), plan, written)


@source.boundaries("compile", "as_text", "compiler_ir", "cost_analysis")
class Lowered(_Stage):
    """A function lowered to StableHLO.

    Example:
        >>> print(jax.jit(lambda x: 2 * x).lower(1.0).as_text())
        module @jit__lambda ... {
          func.func public @main(%arg0: tensor<f32>) -> (tensor<f32> {jax.result_info = "result"}) {
            %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
            %0 = stablehlo.multiply %cst, %arg0 : tensor<f32>
            return %0 : tensor<f32>
          }
        }
    """

    def __init__(
        self,
        traced: Traced,
        lowered: LoweredProgram,
        plan: CallPlan | None,
        written: Sequence[int],
    ) -> None:
        super().__init__(traced._staged, traced.in_tree)
        self._lowered = lowered
        # None if the meshes are abstract.
        self._plan = plan
        # Which arguments are references whose new values are the last results.
        self._written = written
        self._compiled: Compiled | None = None

    @property
    def has_devices(self) -> bool:
        """Whether it is known where the program runs, so that it can be compiled."""
        return self._plan is not None

    @property
    def replicas(self) -> Replicated | None:
        """The devices that run replicas of the program, and over which axes; None for no `pmap`."""
        shape = self._lowered.plan.shape
        return shape if isinstance(shape, Replicated) else None

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module as text: `"stablehlo"` (the default) or `"hlo"`.

        Raises:
            ValueError: the dialect is none of these.
        """
        if dialect in (None, "stablehlo"):
            return str(self._lowered.module.operation.get_asm(enable_debug_info=debug_info))
        self._check_dialect(dialect)
        return hlo_text(self._lowered.module)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module itself: MLIR for `"stablehlo"`, an XLA computation for `"hlo"`.

        Raises:
            ValueError: the dialect is none of these.
        """
        if dialect in (None, "stablehlo"):
            return self._lowered.module
        self._check_dialect(dialect)
        return computation(self._lowered.module)

    @staticmethod
    def _check_dialect(dialect: str | None) -> None:
        if dialect != "hlo":
            problem = f"unknown dialect {dialect!r}."
            error(ValueError, "Lowered.as_text", problem, expected="'stablehlo' or 'hlo'")

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of operations and bytes of the module before optimization."""
        return module_costs(self._lowered.module, client.get_backend())

    def compile(self, compiler_options: Mapping[str, Any] | None = None) -> Compiled:
        """Compiles the module; repeated calls without options give the same executable."""
        if compiler_options is None and self._compiled is not None:
            return self._compiled
        if self._plan is None:
            problem = "cannot be compiled: its meshes are abstract, and have no devices."
            fix = "lower it for a Mesh with devices, make_mesh(...), or inside set_mesh(mesh)"
            error(ValueError, self.fun_name, problem, fix=fix)
        executable = compilation.compile_lowered(
            self._lowered, self._plan, options=compiler_options
        )
        compiled = Compiled(self, executable)
        if compiler_options is None:
            self._compiled = compiled
        return compiled


@source.boundaries("as_text", "cost_analysis", "memory_analysis", "runtime_executable")
class Compiled(_Stage):
    """A function compiled for arguments of certain types: call it with such arguments.

    Example:
        >>> compiled = jax.jit(lambda x: 2 * x).lower(jnp.ones(2, jnp.int32)).compile()
        >>> compiled(jnp.array([1, 2]))
        Array([2, 4], dtype=int32)
        >>> compiled(jnp.ones(3))
        Traceback (most recent call last):
        TypeError: ...
    """

    def __init__(self, lowered: Lowered, executable: Executable) -> None:
        super().__init__(lowered._staged, lowered.in_tree)
        self._executable = executable
        self._written = lowered._written
        # A strong reference would be a cycle through C++, and the program would never die.
        own: Any = weakref.WeakMethod(self._answer)
        self._native = eager.native_function(self.fun_name, lambda *x, **named: own()(x, named))

    @source.is_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program.

        Raises:
            TypeError: the arguments' tree or types are others than it was compiled for.
            ValueError: an argument is committed to another device.
        """
        try:
            try:
                return self._native(*args, **kwargs)
            except (ValueError, RuntimeError, SystemError) as error:
                explain_deleted(error, args, kwargs)
                raise
        except Exception as exception:
            source.filter_frames(exception)
            raise

    def _answer(self, args: Any, kwargs: Any) -> tuple[Any, Any, bool]:
        """Answers a call that C++ cannot: result, data for C++, and whether to forget the call."""
        leaves, in_tree = tree.flatten((args, kwargs))
        if any(isinstance(x, Tracer) for x in leaves):
            problem = "a compiled function cannot be called on traced values."
            fix = "call the jitted function, which is staged with the rest"
            error(TypeError, self.fun_name, problem, fix=fix)
        self._check_call(args, kwargs, leaves, in_tree)
        values = self._outer + leaves
        outs = self._executable(list(map(discharge.value_of, values)))
        results = discharge.write_finals(outs, [values[i] for i in self._written])
        result = tree.unflatten(self.out_tree, results)
        if self._outer or self._written or current.value is not eager.EAGER:
            return result, None, True
        return result, eager.fast_path(self._executable, len(leaves), result, leaves), False

    def _check_call(self, args: Any, kwargs: Any, leaves: Sequence[Any], in_tree: Any) -> None:
        if in_tree != self.in_tree:
            self._refuse_tree(args, kwargs, in_tree)
        info = self._closed.jaxpr.debug_info
        check_values(self.fun_name, leaves, info)
        names = info.arg_names or ()
        # Arguments are moved to a device on which the user has said to run.
        is_pinned = self._requested.device is not None
        wrong, moved = [], []
        places = self._places()[len(self._outer) :]
        for i, (x, expected, place) in enumerate(zip(leaves, self._in_avals, places, strict=True)):
            name = names[i] if i < len(names) else f"argument {i}"
            given = aval_of(x)
            if not same_type(given, expected):
                wrong.append(f"{name}: compiled with {expected}, called with {given}")
            elif place is not None and not is_pinned and _is_elsewhere(x, place):
                own = x.sharding
                moved.append(f"{name}: compiled for {place.public}, called on {own}")
        for kind, what, lines in ((TypeError, "types", wrong), (ValueError, "placements", moved)):
            if lines:
                count = f"{len(lines)} of {len(self._in_avals)}"
                error(
                    kind,
                    self.fun_name,
                    f"{what} of arguments differ from those it was compiled for ({count}).",
                    got="\n".join(lines[:5]) + ("\n…" if len(lines) > 5 else ""),
                    fix="lower and compile for these arguments, or call the jitted function",
                )

    def _refuse_tree(self, args: Any, kwargs: Any, in_tree: object) -> None:
        own_args, own_kwargs = tree.unflatten(self.in_tree, [0] * self.in_tree.num_leaves)
        if kwargs and not own_kwargs:
            problem = "was compiled without keyword arguments, so it takes none."
        elif len(args) != len(own_args):
            problem = (
                f"was compiled for {len(own_args)} positional argument(s) "
                f"but called with {len(args)}."
            )
        else:
            problem = "was compiled for arguments of another tree."
        paths = (
            [
                f"{e('arguments')}"
                for e in tree_errors.prefix_errors((own_args, own_kwargs), (args, kwargs))
            ]
            if len(args) == len(own_args)
            else []
        )
        got = "\n".join([str(in_tree), *paths[:1]])
        error(TypeError, self.fun_name, problem, got=got, expected=str(self.in_tree))

    def as_text(self) -> str:
        """The optimized HLO; that of a stored program has the lines of who compiled it first."""
        return str(self._loaded("as_text").get_hlo_text())

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of operations and bytes of the optimized program."""
        return dict(self._loaded("cost_analysis").cost_analysis())

    def memory_analysis(self) -> Any:
        """Bytes of arguments, results, temporaries and code."""
        return self._loaded("memory_analysis").get_compiled_memory_stats()

    def runtime_executable(self) -> Any:
        """Jaxlib's executable; None where the back end has compiled for itself."""
        return self._executable.loaded

    def _loaded(self, method: str) -> Any:
        """Jaxlib's executable, for what only that can tell."""
        loaded = self._executable.loaded
        if loaded is None:
            problem = "the back end has compiled for itself, and made no executable to ask."
            got = f"{self.fun_name} on {self._executable.devices[0]}"
            fix = "ask the lowered program, which is the same everywhere"
            error(NotImplementedError, f"Compiled.{method}", problem, got=got, fix=fix)
        return loaded

    def _places(self) -> list[Any]:
        """The native shardings of all arguments; None for those that are not used."""
        used = self._executable.place
        total = len(self._closed.jaxpr.invars)
        kept = range(total) if used.kept is None else used.kept
        found: list[Any] = [None] * total
        for i, place in zip(kept, used.targets, strict=True):
            found[i] = place
        return found

    @property
    def input_shardings(self) -> Any:
        """Where arguments live, as the tree of (args, kwargs); None for those not used."""
        places = self._places()[len(self._outer) :]
        return tree.unflatten(self.in_tree, [p and p.public for p in places])

    @property
    def output_shardings(self) -> Any:
        """Where results live, as their tree."""
        count = self.out_tree.num_leaves
        return tree.unflatten(
            self.out_tree, [p.public for p in self._executable.build.targets[:count]]
        )

    @property
    def input_formats(self) -> Any:
        """How arguments lie in memory, as the tree of (args, kwargs); None for those not used."""
        places = self._places()[len(self._outer) :]
        formats = [p and _format(p, a) for p, a in zip(places, self._in_avals, strict=True)]
        return tree.unflatten(self.in_tree, formats)

    @property
    def output_formats(self) -> Any:
        """How results lie in memory, as their tree."""
        formats = map(_format, self._executable.build.targets, self._closed.out_avals)
        return tree.unflatten(self.out_tree, list(formats)[: self.out_tree.num_leaves])

    @property
    def out_info(self) -> Any:
        """Shapes, dtypes and placements of the results, as their tree."""
        places = [place.public for place in self._executable.build.targets]
        return tree.unflatten(self.out_tree, list(map(struct_of, self._closed.out_avals, places)))


def _format(place: Any, aval: AbstractValue) -> Format:
    return Format(place.layout or Layout(range(aval.ndim), ()), place.public)


def _is_elsewhere(x: Any, place: Any) -> bool:
    """Whether an argument is committed to another placement than a program expects."""
    if not is_array(x):
        return False
    in_flight.check_alive(x.buffer)
    own = x.buffer._sharding
    if not x.committed or own is place:
        return False
    return own.devices != place.devices or not named.are_hlo_shardings_equal(
        own.hlo, place.hlo, x.buffer.aval.ndim
    )
