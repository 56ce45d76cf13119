"""Laws of how programs are run, of where devices are, and of derivatives: numbers 12 to 20, and 25.

Each law is a function of a `DeviceProgram` or of a `Case`; its docstring states it.

For derivatives a program is seen from outside, as a function of whole arrays, so that the pairing
of values that vary, are copies, or are summands is that of whole arrays: the sum of products.  The
oracle computes both sides, so that what is judged are the rules of derivatives and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from hypothesis import currently_in_test_context, event, note

from minijax import lax
from minijax.core import tree
from minijax.core.aval import aval_of
from minijax.core.errors import MissingRule, error, message
from minijax.core.jaxpr import Eqn, Jaxpr, jaxprs_in_params
from minijax.core.meshes import PartitionSpec
from minijax.interpreters import passes
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.testing import oracle, programs
from minijax.testing.laws.collectives import (
    Case,
    Collective,
    Operation,
    linear_operations,
    operations,
    statement_of,
)
from minijax.testing.numpy_model import Block
from minijax.testing.programs import DeviceProgram, check_agree
from minijax.testing.strategies import arguments
from minijax.transforms.autodiff.custom_jvp import custom_jvp_call_p
from minijax.transforms.autodiff.custom_vjp import custom_lin_p, custom_vjp_call_p
from minijax.transforms.autodiff.grad import grad, jvp, vjp
from minijax.transforms.autodiff.linear_call import linear_call_p
from minijax.transforms.jit.tracing import eval_shape, make_jaxpr
from minijax.transforms.per_device.shard_map import shard_map
from minijax.transforms.vmap import vmap

QUICK = ("checked", "unchecked", "vmap", "pmap")


def executions_agree(program: DeviceProgram, ways: Sequence[str] | None = None) -> None:
    """vmap(axis_name) = pmap = shard_map, eager or compiled = the oracle.

    Source: law 18 of the catalogue; JAX has nothing like it.

    Args:
        program: the program.
        ways: names of `programs.ENGINES`; all that the program allows by default.  One that lacks
            what the program needs is passed over.

    Raises:
        AssertionError: two ways do not agree.

    Example:
        >>> from minijax.testing import laws
        >>> def total(x):
        ...     return lax.psum(x * x, "x")
        >>> x = np.arange(4, dtype=np.float32)
        >>> laws.executions_agree(laws.program_of(total, {"x": 4}, jax.P("x"), jax.P(), x))
    """
    allowed = [way for way in programs.engines_for(program) if way != "oracle"]
    expected = programs.simulated(program)
    for way in allowed if ways is None else [w for w in ways if w in allowed]:
        try:
            found = programs.run(program, way)
        except NotImplementedError:
            continue
        sides = {way: found, "oracle": expected}
        check_agree("laws.executions_agree", sides, program, statement_of(executions_agree))


def vmap_stacks_results(program: DeviceProgram, engine: str = "oracle") -> None:
    """vmap over an axis that has nothing to do with the devices stacks results.

    Wherever arguments and results have it, be some of them without it.

    Source: law 19 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> def total(x):
        ...     return lax.psum(x * x, "x")
        >>> x = np.arange(4, dtype=np.float32)
        >>> laws.vmap_stacks_results(laws.program_of(total, {"x": 4}, jax.P("x"), jax.P(), x))
    """
    count = 2
    for at in (0, -1):
        batches = [_batch(x, count, at) for x in program.inputs]
        in_specs = [
            _with_dim(s, np.ndim(x), at)
            for s, x in zip(program.in_specs, program.inputs, strict=True)
        ]
        out_specs, out_at = _out_specs(program, at)
        batched = program.with_function(
            vmap(program.function, in_axes=at, out_axes=out_at),
            inputs=batches,
            in_specs=in_specs,
            out_specs=out_specs,
            source="",
        )
        found = programs.run(batched, engine)
        rows = []
        for i in range(count):
            inputs = [np.take(x, i, at) for x in batches]
            rows.append(
                programs.run(program.with_function(program.function, inputs=inputs), engine)
            )
        expected = [np.stack(outs, out_at) for outs in zip(*rows, strict=True)]
        sides = {"vmap": found, "one by one": expected}
        check_agree("laws.vmap_stacks_results", sides, program, statement_of(vmap_stacks_results))


def _batch(x: Block, count: int, at: int) -> Any:
    """Several arrays like `x`, none of them equal, stacked."""
    rows = [x]
    for i in range(1, count):
        rows.append(np.roll(x, i).astype(np.asarray(x).dtype))
        if np.asarray(x).dtype != np.bool_:
            rows[-1] = (rows[-1] + np.asarray(i, np.asarray(x).dtype)).astype(np.asarray(x).dtype)
    return np.stack(rows, at)


def _with_dim(spec: PartitionSpec, ndim: int, at: int) -> PartitionSpec:
    """A spec for one more dimension, the first or the last, which is not cut."""
    entries = [*spec, *[None] * (ndim - len(spec))]
    return PartitionSpec(*([None, *entries] if at == 0 else [*entries, None]))


def _out_specs(program: DeviceProgram, at: int) -> tuple[Any, int]:
    """The out_specs of a batch, and where results have it: last only where ranks are known."""
    if at == -1 and program.kinds:
        specs = tree.leaves(program.out_specs, is_leaf=_is_spec)
        found = [
            _with_dim(spec, len(kind.shape), -1)
            for spec, kind in zip(specs, program.kinds, strict=True)
        ]
        return (found[0] if _is_spec(program.out_specs) else tuple(found)), -1
    led = tree.map(lambda spec: _with_dim(spec, 0, 0), program.out_specs, is_leaf=_is_spec)
    return led, 0


def _is_spec(x: object) -> bool:
    return isinstance(x, PartitionSpec)


def checked_is_unchecked(program: DeviceProgram, engine: str = "oracle") -> None:
    """`check_vma` on and off give equal values, wherever the types are accepted.

    What types say to be the same on several devices is the same there.

    Source: law 20 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> def total(x):
        ...     return lax.psum(x * x, "x")
        >>> x = np.arange(4, dtype=np.float32)
        >>> laws.checked_is_unchecked(laws.program_of(total, {"x": 4}, jax.P("x"), jax.P(), x))
    """
    if "checked" not in program.modes or "unchecked" not in program.modes:
        return
    ways = ("oracle", "oracle_unchecked") if engine == "oracle" else ("checked", "unchecked")
    sides = {way: programs.run(program, way) for way in ways}
    check_agree("laws.checked_is_unchecked", sides, program, statement_of(checked_is_unchecked))


def lowerings_agree(program: DeviceProgram) -> None:
    """A program as replicas, and as partitions, gives equal values.

    As partitions by Shardy, and by GSPMD.

    Source: law 25 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> def total(x):
        ...     return lax.psum(x * x, "x")
        >>> x = np.arange(4, dtype=np.float32)
        >>> laws.lowerings_agree(laws.program_of(total, {"x": 4}, jax.P("x"), jax.P(), x))
    """
    ways = [w for w in ("checked", "gspmd", "pmap") if w in programs.engines_for(program)]
    first, *others = ways
    expected = programs.run(program, first)
    for way in others:
        sides: dict[str, Any] = {way: programs.run(program, way), first: expected}
        check_agree("laws.lowerings_agree", sides, program, statement_of(lowerings_agree))


def types_are_sound(program: DeviceProgram) -> None:
    """Results have the shapes, dtypes and varying axes that the collectives' tables say.

    The program must come from `strategies.device_programs`.

    Source: of the project; JAX has nothing like it.

    Example:
        >>> from hypothesis import given, settings
        >>> from minijax.testing import laws, strategies
        >>> check = given(strategies.device_programs(max_steps=3))(laws.types_are_sound)
        >>> settings(max_examples=5)(check)()
    """
    shapes = [kind.shape for kind in program.kinds]
    dtypes = [kind.dtype for kind in program.kinds]
    found: list[Any] = []

    def looking(*blocks: Any) -> Any:
        outs = program.function(*blocks)
        leaves = tree.leaves(outs)
        found[:] = [(leaf.shape, np.dtype(leaf.dtype).name, aval_of(leaf).vma) for leaf in leaves]
        return outs

    programs.run(program.with_function(looking), "oracle")
    expected = list(zip(shapes, dtypes, (k.varying for k in program.kinds), strict=True))
    if "checked" not in program.modes:
        found = [(*kind[:2], e[2]) for kind, e in zip(found, expected, strict=True)]
    if found != expected:
        raise AssertionError(
            f"laws.types_are_sound: results are {found}, expected {expected}\nprogram\n{program!r}"
        )


def _merged(case: Case, x: Block, axes: tuple[str, ...]) -> Any:
    """Stacked blocks with some mesh axes merged into one, after the others."""
    names = list(case.sizes)
    rest = [i for i, name in enumerate(names) if name not in axes]
    own = [names.index(axis) for axis in axes]
    blocks = list(range(len(names), x.ndim))
    moved = np.transpose(x, rest + own + blocks)
    sizes = [case.sizes[names[i]] for i in rest]
    return moved.reshape(*sizes, case.n, *x.shape[len(names) :])


def product_axis_is_one_axis(case: Case) -> None:
    """A collective over axes (a, b) is that over one axis of |a|·|b| devices.

    In the order of the names; for ppermute, in the order of the mesh.

    Source: law 12 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.product_axis_is_one_axis(laws.Case({"x": 4}, ("x",)))
    """
    rest = {name: size for name, size in case.sizes.items() if name not in case.axes}
    one = case.changed(sizes={**rest, "merged": case.n}, axes=("merged",))
    for operation in operations(case).values():
        axes = case.axes
        if not operation.is_ordered:
            axes = tuple(a for a in case.sizes if a in case.axes)
        x = case.blocks(*operation.shape)
        (several,) = case.run(lambda x, f=operation.apply: f(x, case.axes), x)
        (single,) = one.run(lambda x, f=operation.apply: f(x, "merged"), _merged(case, x, axes))
        found = _merged(case, several, axes)
        case.compare(product_axis_is_one_axis, [found], [single])


def names_and_places_do_not_matter(case: Case) -> None:
    """Other names of axes change nothing, nor do other devices.

    Devices in another order along an axis change no sum and no extreme, and gather blocks in that
    order.

    Source: law 13 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.names_and_places_do_not_matter(laws.Case({"x": 4}, ("x",)))
    """
    renamed = {name: f"axis {i}" for i, name in enumerate(case.sizes)}
    other = case.changed(
        sizes={renamed[name]: size for name, size in case.sizes.items()},
        axes=[renamed[axis] for axis in case.axes],
    )
    for operation in operations(case).values():
        x = case.blocks(*operation.shape)
        own = case.run(lambda x, f=operation.apply: f(x, case.axes), x)
        case.compare(
            names_and_places_do_not_matter,
            own,
            other.run(lambda x, f=operation.apply: f(x, other.axes), x),
        )
    axis = case.axes[0]
    _check_order(case, axis)
    if case.engine not in ("oracle", "oracle_unchecked", "vmap", "pmap", "eager_pmap"):
        _check_devices(case)


def _check_order(case: Case, axis: str) -> None:
    at, size = list(case.sizes).index(axis), case.sizes[axis]
    order = case.random.permutation(size)
    x = case.blocks(2, 3)
    permuted = np.take(x, order, at)

    def function(x: Array) -> Any:
        return case.lax.psum(x, axis), case.lax.pmax(x, axis), case.lax.all_gather(x, axis)

    total, most, gathered = case.run(function, x)
    own = case.run(function, permuted)
    in_order = np.take(gathered, order, len(case.sizes))
    case.compare(names_and_places_do_not_matter, own, [total, most, in_order])


def _check_devices(case: Case) -> None:
    def function(x: Array) -> Any:
        return case.lax.all_gather(x, case.axes), case.lax.psum_scatter(x, case.axes, tiled=True)

    program = case.program(function, case.blocks(case.n, 3))
    backwards = list(programs.devices_for(program))[::-1]
    found = programs.checked(program, devices=backwards)
    case.compare(names_and_places_do_not_matter, programs.checked(program), found)


def groups_are_an_axis(case: Case) -> None:
    """A collective in groups along an axis is that over an axis of their members.

    On a mesh where two axes, of the groups and of their members, stand for the one.

    Source: law 14 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.groups_are_an_axis(laws.Case({"x": 4}, ("x",)))
    """
    axis = case.axes[0]
    at = list(case.sizes).index(axis)
    groups = case.groups(case.sizes[axis])
    order = [i for group in groups for i in group]
    shape = (len(groups), len(groups[0]))
    sizes: dict[str, int] = {}
    for name, length in case.sizes.items():
        sizes.update({"group": shape[0], "member": shape[1]} if name == axis else {name: length})
    engine = {"oracle": "oracle_unchecked", "checked": "unchecked"}.get(case.engine, case.engine)
    grouped = case.changed(axes=(axis,), engine=engine)
    split = case.changed(sizes=sizes, axes=("member",), engine=engine)
    for operation in operations(split).values():
        if not operation.takes_groups or not case.lax.take(operation.name, "axis_index_groups"):
            continue
        f = operation.apply
        x = case.blocks(*operation.shape)

        def cut(x: Block) -> Any:
            moved = np.take(x, order, at)
            return moved.reshape(*x.shape[:at], *shape, *x.shape[at + 1 :])

        (own,) = grouped.run(lambda x, f=f: f(x, axis, axis_index_groups=groups), x)
        (found,) = split.run(lambda x, f=f: f(x, "member"), cut(x))
        case.compare(groups_are_an_axis, [cut(own)], [found])


def whole_function(program: DeviceProgram, *, check_vma: bool) -> Callable[..., Any]:
    """A program as a function of whole arrays, without devices."""
    return shard_map(
        program.function,
        mesh=program.mesh,
        in_specs=program.in_specs,
        out_specs=program.out_specs,
        check_vma=check_vma,
    )


def _is_float(x: ArrayLike) -> bool:
    return bool(np.asarray(x).dtype.kind in "fc")


class _Floats:
    """A program as a function from its arguments of floats to its results of floats."""

    def __init__(self, program: DeviceProgram, function: Callable[..., Any]) -> None:
        self.at = [i for i, x in enumerate(program.inputs) if _is_float(x)]
        self.point = [np.asarray(program.inputs[i]) for i in self.at]
        self._program = program
        self._function = function

    def __call__(self, *point: Any) -> list[Any]:
        args = list(self._program.inputs)
        for i, x in zip(self.at, point, strict=True):
            args[i] = x
        outs = tree.leaves(self._function(*args))
        return [out for out in outs if np.dtype(out.dtype).kind in "fc"]

    def forward(self, point: Sequence[Array], tangents: Sequence[Array]) -> Any:
        """Results and their tangents, by jvp."""
        return jvp(self, tuple(point), tuple(tangents))

    def reverse(self, point: Sequence[Array]) -> Any:
        """Results, cotangents of them, and those that vjp makes of these for the arguments."""
        outs, pull = vjp(self, *point)
        cotangents = directions(outs, 7)
        return outs, cotangents, pull(cotangents)

    def lacks(self, mode: str) -> str:
        """Why there is no derivative in the mode "forward" or "reverse"; empty if there is one."""
        if not self.point:
            return "no argument is a float"
        if not eval_shape(self, *self.point):
            return "no result is a float"
        try:
            forward = make_jaxpr(self.forward)(self.point, self.point).jaxpr
            params = {eqn.primitive: eqn.params for eqn in _equations(forward)}
            if mode == "reverse":
                make_jaxpr(self.reverse)(self.point)
            elif custom_lin_p in params:
                name = params[custom_lin_p]["name"]
                return f"custom_vjp of {name} has no forward-mode derivative"
        except MissingRule as missing:
            return str(missing).partition("\n")[0].rstrip(".")
        except ValueError as refused:
            if "reverse-mode differentiation is impossible" not in str(refused):
                raise
            return "lax.while_loop has no reverse-mode derivative"
        return ""


def _equations(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """The equations of a jaxpr, and of those inside of it."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jaxprs_in_params(eqn.params):
            yield from _equations(inner)


def _skipped(law: Callable[..., Any], reason: str) -> str:
    """The reason why a law had nothing to check, of which Hypothesis's report tells too."""
    if currently_in_test_context():
        for report in (event, note):
            report(f"laws.{law.__name__} skipped: {reason}")
    return reason


def directions(arrays: Sequence[Any], step: int) -> list[Any]:
    """An array of small numbers like each of some."""
    return [arguments.array(x.shape, x.dtype, step) for x in arrays]


def modes_of(program: DeviceProgram) -> tuple[bool, ...]:
    """The settings of `check_vma` that a program is for."""
    return tuple(mode == "checked" for mode in sorted(program.modes))


def derivatives_are_adjoint(program: DeviceProgram) -> str | None:
    """⟨u, J t⟩ = ⟨Jᵀ u, t⟩ for the derivative J of a program.

    With `check_vma` on and off; J by jvp, Jᵀ by vjp.

    Source: law 15 of the catalogue; JAX has nothing like it.

    Returns:
        Why the program has no such derivatives, if it has none.

    Example:
        >>> from minijax.testing import laws
        >>> def total(x):
        ...     return lax.psum(x * x, "x")
        >>> x = np.arange(4, dtype=np.float32)
        >>> laws.derivatives_are_adjoint(laws.program_of(total, {"x": 4}, jax.P("x"), jax.P(), x))
    """
    for check_vma in modes_of(program):
        f = _Floats(program, whole_function(program, check_vma=check_vma))
        lacking = f.lacks("forward") or f.lacks("reverse")
        if lacking:
            return _skipped(derivatives_are_adjoint, lacking)
        tangents = directions(f.point, 3)

        def both(point: Sequence[Array], tangents: Sequence[Array], f: _Floats = f) -> Any:
            return f.forward(point, tangents)[1], *f.reverse(point)[1:]

        moved, cotangents, pulled = oracle.simulate_program(both)(f.point, tangents)
        left, right = _dot(cotangents, moved), _dot(pulled, tangents)
        size = _size_of_dot(cotangents, moved) + _size_of_dot(pulled, tangents)
        if not abs(left - right) <= 1e-4 * (1 + size):
            raise AssertionError(
                message(
                    "laws.derivatives_are_adjoint",
                    f"⟨u, J t⟩ = {left:.7g}, ⟨Jᵀ u, t⟩ = {right:.7g}.",
                    got=f"check_vma={check_vma}",
                    expected=statement_of(derivatives_are_adjoint),
                )
                + f"\nprogram\n{program!r}"
            )
    return None


def _dot(left: Sequence[Any], right: Sequence[Any]) -> float:
    """The sum of all products; its real part, since complex functions are so of reals."""
    return float(sum(_products(a, b).sum() for a, b in zip(left, right, strict=True)))


def _size_of_dot(left: Sequence[Any], right: Sequence[Any]) -> float:
    return float(sum(np.abs(_products(a, b)).sum() for a, b in zip(left, right, strict=True)))


def _products(a: ArrayLike, b: ArrayLike) -> Block:
    return (np.asarray(a, np.complex128) * np.asarray(b, np.complex128)).real


def casts_are_dual(case: Case) -> None:
    """Casts change no element, and the transpose of each is its dual.

    I to R to V is I to V, and sums stand in derivatives exactly where the kinds of values say.

    Source: law 16 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.casts_are_dual(laws.Case({"x": 4}, ("x",)))
    """
    floats = case.changed(dtype="float32")
    axes = case.axes

    def varied(x: Array) -> Any:
        return lax.pcast(x, axes, to="varying")

    def varied_from_reduced(x: Array) -> Any:
        return lax.pcast(lax.pcast(x, axes, to="reduced"), axes, to="varying")

    def summed_from_summands(x: Array) -> Any:
        return lax.unreduced_psum(lax.pcast(x, axes, to="unreduced"), axes)

    def both(x: Array) -> Any:
        same = lax.pmax(x, axes)
        return varied_from_reduced(same), varied(same)

    left, right = floats.run(both, floats.blocks(2, 3))
    floats.compare(casts_are_dual, [left], [right])
    same, differing = PartitionSpec(), PartitionSpec(axes)
    for function, in_spec, out_spec, expected in (
        (varied, same, differing, ["psum_invariant"]),
        (varied_from_reduced, same, differing, ["unreduced_psum"]),
        (summed_from_summands, differing, same, []),
        (lambda x: case.lax.psum(x, axes), differing, same, []),
    ):
        found = _sums_in_transpose(floats, function, in_spec, out_spec)
        if found != expected:
            error(
                AssertionError,
                "laws.casts_are_dual",
                f"the transpose of {function.__name__} has the sums {found}, not {expected}.",
                got=repr(case),
                expected=statement_of(casts_are_dual),
            )


def _sums_in_transpose(
    case: Case, function: Callable[..., Any], in_spec: PartitionSpec, out_spec: PartitionSpec
) -> list[str]:
    """The names of the sums over devices in the transpose of a function of one block."""

    def transpose(x: Array, ct: Array) -> Any:
        (out,) = vjp(function, x)[1](ct)
        return out

    def block(spec: PartitionSpec) -> Any:
        return np.zeros(2 * case.n if spec else 2, np.float32)

    program = DeviceProgram(
        transpose, case.sizes, (in_spec, out_spec), in_spec, (block(in_spec), block(out_spec))
    )
    closed = make_jaxpr(whole_function(program, check_vma=True))(*program.inputs)
    jaxpr, _ = passes.dce_jaxpr(closed.jaxpr)
    return sorted(_sums_of(jaxpr))


def _sums_of(jaxpr: Jaxpr) -> list[str]:
    names = [eqn.primitive.name for eqn in _equations(jaxpr)]
    return [name for name in names if name in ("psum", "psum_invariant", "unreduced_psum")]


def tangents_of_linear(case: Case) -> str | None:
    """The derivative of a linear collective is the collective, applied to the tangent.

    Source: law 17 of the catalogue; JAX has nothing like it.

    Returns:
        Which collectives have no such derivative, if any.

    Example:
        >>> from minijax.testing import laws
        >>> laws.tangents_of_linear(laws.Case({"x": 4}, ("x",)))
    """
    floats = case.changed(dtype="float32")
    lacking = []
    for operation in linear_operations(floats):

        def moved(x: Array, t: Array, f: Collective = operation.apply) -> Any:
            return jvp(lambda x: f(x, floats.axes), (x,), (t,))[1]

        def applied(x: Array, t: Array, f: Collective = operation.apply) -> Any:
            return f(t, floats.axes)

        inputs = floats.blocks(*operation.shape), floats.blocks(*operation.shape)
        reason = _floats_of(floats, operation, inputs[0]).lacks("forward")
        if reason:
            lacking.append(_skipped(tangents_of_linear, reason))
        else:
            floats.check(tangents_of_linear, moved, applied, *inputs)
    return "; ".join(lacking) or None


def _program_of(case: Case, operation: Operation, x: Block) -> DeviceProgram:
    """One collective as a program on the mesh of a case, for the types that its engine has."""

    def function(x: Array) -> Any:
        return operation.apply(x, case.axes)

    function.__name__ = operation.name
    mode = "checked" if case.engine in ("oracle", "checked", "gspmd", "eager") else "unchecked"
    program = case.program(function, x)
    return program.with_function(program.function, modes=frozenset({mode}))


def _floats_of(case: Case, operation: Operation, x: Block) -> _Floats:
    program = _program_of(case, operation, x)
    return _Floats(program, whole_function(program, check_vma=modes_of(program)[0]))


def gradients_of_linear(case: Case) -> str | None:
    """The gradient of a linear collective along a direction is the slope of its values.

    Source: law 17 of the catalogue; JAX has nothing like it.

    Returns:
        Which collectives have no such derivative, if any.

    Example:
        >>> from minijax.testing import laws
        >>> laws.gradients_of_linear(laws.Case({"x": 4}, ("x",)))
    """
    floats = case.changed(dtype="float32")
    lacking = [
        gradients_are_slopes(_program_of(floats, operation, floats.blocks(*operation.shape)))
        for operation in linear_operations(floats)
    ]
    return "; ".join(filter(None, lacking)) or None


def derivatives_are_slopes(program: DeviceProgram) -> str | None:
    """The derivative of a program along a direction is the slope of its values.

    The derivative is found by jvp, the slope by differences.

    Source: law 17 of the catalogue; JAX has nothing like it.

    Returns:
        Why the program has no such derivative, if it has none.

    Example:
        >>> from minijax.testing import laws
        >>> def total(x):
        ...     return lax.psum(x * x, "x")
        >>> x = np.arange(4, dtype=np.float32)
        >>> laws.derivatives_are_slopes(laws.program_of(total, {"x": 4}, jax.P("x"), jax.P(), x))
    """
    check_vma = "checked" in program.modes
    f = _Floats(program, whole_function(program, check_vma=check_vma))
    lacking = f.lacks("forward")
    if lacking:
        return _skipped(derivatives_are_slopes, lacking)
    tangents = directions(f.point, 3)
    _, moved = oracle.simulate_program(f.forward)(f.point, tangents)
    slopes, sizes = _slopes(f, tangents, 2.0**-6)
    for k, (slope, found, size) in enumerate(zip(moved, slopes, sizes, strict=True)):
        # Rounding of the values, and the third derivative, of which tanh has a little.
        scale = 1 + np.abs(found).max(initial=0) + size
        if not np.all(np.abs(found - slope) <= 2e-2 * scale):
            raise AssertionError(
                message(
                    "laws.derivatives_are_slopes",
                    f"result {k}: by jvp\n{slope}\nby differences\n{found}",
                    expected=statement_of(derivatives_are_slopes),
                )
                + f"\nprogram\n{program!r}"
            )
    return None


def _slopes(f: _Floats, tangents: Sequence[Any], step: float) -> tuple[list[Any], list[float]]:
    """The slopes of a program's results along a direction, and how great each is at most."""

    def moved(sign: float) -> list[Block]:
        point = [
            (x + np.asarray(t * sign * step, x.dtype)).astype(x.dtype)
            for x, t in zip(f.point, tangents, strict=True)
        ]
        outs = [np.asarray(out) for out in oracle.simulate_program(f)(*point)]
        return [out.astype(np.complex128 if out.dtype.kind == "c" else np.float64) for out in outs]

    ahead, behind = moved(1.0), moved(-1.0)
    slopes = [(a - b) / (2 * step) for a, b in zip(ahead, behind, strict=True)]
    return slopes, [float(np.abs(a).max(initial=0)) for a in ahead]


def gradients_are_slopes(program: DeviceProgram) -> str | None:
    """The gradient of a program along a direction is the slope of its values.

    The gradient is found by vjp, the slope by differences, in which no rule of derivatives has
    part, not even one of `custom_vjp`.

    Source: law 17 of the catalogue; JAX has nothing like it.

    Returns:
        Why the program has no gradient, if it has none.

    Example:
        >>> from minijax.testing import laws
        >>> def total(x):
        ...     return lax.psum(x * x, "x")
        >>> x = np.arange(4, dtype=np.float32)
        >>> laws.gradients_are_slopes(laws.program_of(total, {"x": 4}, jax.P("x"), jax.P(), x))
    """
    for check_vma in modes_of(program):
        f = _Floats(program, whole_function(program, check_vma=check_vma))
        lacking = f.lacks("reverse")
        if lacking:
            return _skipped(gradients_are_slopes, lacking)
        outs, cotangents, gradients = oracle.simulate_program(f.reverse)(f.point)
        sides = {"the results by vjp": outs, "the results": oracle.simulate_program(f)(*f.point)}
        check_agree("laws.gradients_are_slopes", sides, program, "the same, whatever is asked for")
        for k, gradient in enumerate(gradients):
            tangents = [np.zeros_like(x) for x in f.point]
            tangents[k] = _random_like(f.point[k])
            slopes, sizes = _slopes(f, tangents, _STEP)
            left, right = _dot(cotangents, slopes), _dot([gradient], [tangents[k]])
            allowed = 4e-3 * _size_of_dot(cotangents, slopes) + 4e-4 * (1 + max(sizes))
            if not abs(left - right) <= allowed:
                _refuse_gradient(program, f, k, (cotangents, gradient), check_vma=check_vma)
    return None


# What the slope leaves away falls with the step, what rounding adds rises.
_STEP = 2.0**-7
_FEW = 64


def _random_like(x: Block) -> Any:
    """Numbers about one, of either sign, which are the same in every run."""
    generator = np.random.default_rng(0)
    size = generator.uniform(0.5, 1, x.shape) * generator.choice([-1, 1], x.shape)
    return size.astype(x.dtype)


def _refuse_gradient(
    program: DeviceProgram, f: _Floats, k: int, found: tuple[Any, Any], *, check_vma: bool
) -> NoReturn:
    """Raises the error that shows a gradient, and the slopes along each element of an argument."""
    cotangents, gradient = found
    shown = ""
    if np.size(gradient) <= _FEW:
        slopes = np.zeros(np.shape(gradient))
        for index in np.ndindex(slopes.shape):
            tangents = [np.zeros_like(x) for x in f.point]
            tangents[k][index] = 1
            slopes[index] = _dot(cotangents, _slopes(f, tangents, _STEP)[0])
        shown = f" by vjp\n{gradient}\nby differences\n{np.round(slopes, 3)}"
    raise AssertionError(
        message(
            "laws.gradients_are_slopes",
            f"the gradient of argument {f.at[k]} is not the slope:{shown}",
            got=f"check_vma={check_vma}",
            expected=statement_of(gradients_are_slopes),
        )
        + f"\nprogram\n{program!r}"
    )


def gradients_agree(
    program: DeviceProgram,
    whole: Callable[..., Any] | None = None,
    *,
    check_vma: bool | None = None,
) -> str | None:
    """The gradient of a program on many devices is that of what it computes, on one.

    Source: of the project; JAX has nothing like it.

    Args:
        program: the program.
        whole: the same function of whole arrays, without collectives; by default the program with
            `vmap(axis_name=...)` in place of devices.  A rule of the user's own would be as wrong
            in both, so that `gradients_are_slopes` is tried where there is one.
        check_vma: the setting to try; those that the program is for by default.

    Returns:
        Why the program has no gradient, if it has none.

    Raises:
        AssertionError: the results, or the gradients of a sum of them, do not agree.

    Example:
        >>> from minijax.testing import laws
        >>> def total(x):
        ...     return lax.psum(x * x, "x")
        >>> x = np.arange(4, dtype=np.float32)
        >>> laws.gradients_agree(laws.program_of(total, {"x": 4}, jax.P("x"), jax.P(), x))
    """

    def loss(function: Callable[..., Any]) -> Callable[..., Any]:
        f = _Floats(program, function)

        def total(*point: Any) -> Any:
            outs = f(*point)
            weights = [arguments.array(out.shape, out.dtype, 7) for out in outs]
            sums = [(out * w).sum() for out, w in zip(outs, weights, strict=True)]
            return sum(sums, np.float32(0))

        return total

    if check_vma is not None:
        mode = "checked" if check_vma else "unchecked"
        program = program.with_function(program.function, modes=frozenset({mode}))
    floats = [i for i, x in enumerate(program.inputs) if _is_float(x)]
    if not floats:
        return _skipped(gradients_agree, "no argument is a float")
    point = [program.inputs[i] for i in floats]
    at = tuple(range(len(floats)))
    if whole is None:
        f = _Floats(program, whole_function(program, check_vma=modes_of(program)[0]))
        used = {eqn.primitive for eqn in _equations(make_jaxpr(f)(*f.point).jaxpr)}
        if not used.isdisjoint((custom_jvp_call_p, custom_vjp_call_p, linear_call_p)):
            gradients_are_slopes(program)
        if custom_vjp_call_p in used:
            # Its rule may be right with types alone, which `vmap` does not have.
            return None
        whole = programs.unsharded(program)
    expected = list(grad(loss(whole), at)(*point))
    for checks in modes_of(program):
        found = list(grad(loss(programs.mapped(program, check_vma=checks)), at)(*point))
        sides = {"the sharded program's gradient": found, "the unsharded one's": expected}
        check_agree("laws.gradients_agree", sides, program, statement_of(gradients_agree))
    return None
