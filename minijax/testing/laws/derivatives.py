"""Laws of derivatives: numbers 15 to 17, and gradients of programs on any number of devices.

A program is seen from outside here, as a function of whole arrays, so that the pairing of values
that vary, are copies, or are summands is that of whole arrays: the sum of products.  The oracle
computes both sides, so that what is judged are the rules of derivatives and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.core import tree
from minijax.core.errors import error, message
from minijax.core.jaxpr import Jaxpr, jaxprs_in_params
from minijax.core.meshes import PartitionSpec
from minijax.interpreters import passes
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.testing import oracle, programs
from minijax.testing.laws.cases import Case, Collective, linear_operations, statement_of
from minijax.testing.programs import DeviceProgram, check_agree
from minijax.testing.strategies import arguments
from minijax.transforms.autodiff.grad import grad, jvp, vjp
from minijax.transforms.jit.tracing import make_jaxpr
from minijax.transforms.per_device.shard_map import shard_map


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


def directions(arrays: Sequence[Any], step: int) -> list[Any]:
    """An array of small numbers like each of some."""
    return [arguments.array(np.shape(x), np.asarray(x).dtype, step) for x in arrays]


def modes_of(program: DeviceProgram) -> tuple[bool, ...]:
    """The settings of `check_vma` that a program is for."""
    return tuple(mode == "checked" for mode in sorted(program.modes))


def derivatives_are_adjoint(program: DeviceProgram) -> None:
    """⟨u, J t⟩ = ⟨Jᵀ u, t⟩ for the derivative J of a program.

    With `check_vma` on and off; J by jvp, Jᵀ by vjp.

    Source: law 15 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> def total(x):
        ...     return lax.psum(x * x, "x")
        >>> x = np.arange(4, dtype=np.float32)
        >>> laws.derivatives_are_adjoint(laws.program_of(total, {"x": 4}, jax.P("x"), jax.P(), x))
    """
    for check_vma in modes_of(program):
        f = _Floats(program, whole_function(program, check_vma=check_vma))
        tangents = directions(f.point, 3)

        def both(point: Sequence[Array], tangents: Sequence[Array], f: _Floats = f) -> Any:
            outs, moved = jvp(f, tuple(point), tuple(tangents))
            cotangents = [arguments.array(out.shape, out.dtype, 7) for out in outs]
            _, pull = vjp(f, *point)
            return cotangents, moved, pull(cotangents)

        if not f.point:
            return
        cotangents, moved, pulled = oracle.simulate_program(both)(f.point, tangents)
        left, right = _dot(cotangents, moved), _dot(pulled, tangents)
        size = sum(float(np.abs(a * b).sum()) for a, b in zip(cotangents, moved, strict=True))
        size += sum(float(np.abs(a * b).sum()) for a, b in zip(pulled, tangents, strict=True))
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


def _dot(left: Sequence[Any], right: Sequence[Any]) -> float:
    return sum(
        float(np.vdot(np.asarray(a, np.float64), np.asarray(b, np.float64)))
        for a, b in zip(left, right, strict=True)
    )


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
    jaxpr, _ = passes.dead_code_elimination(closed.jaxpr)
    return sorted(_sums_of(jaxpr))


def _sums_of(jaxpr: Jaxpr) -> list[str]:
    found = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in ("psum", "psum_invariant", "unreduced_psum"):
            found.append(eqn.primitive.name)
        for inner in jaxprs_in_params(eqn.params):
            found += _sums_of(inner)
    return found


def tangents_of_linear(case: Case) -> None:
    """The derivative of a linear collective is the collective, applied to the tangent.

    Source: law 17 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.tangents_of_linear(laws.Case({"x": 4}, ("x",)))
    """
    floats = case.changed(dtype="float32")
    for operation in linear_operations(floats):

        def moved(x: Array, t: Array, f: Collective = operation.apply) -> Any:
            return jvp(lambda x: f(x, floats.axes), (x,), (t,))[1]

        def applied(x: Array, t: Array, f: Collective = operation.apply) -> Any:
            return f(t, floats.axes)

        inputs = floats.blocks(*operation.shape), floats.blocks(*operation.shape)
        floats.check(tangents_of_linear, moved, applied, *inputs)


def derivatives_are_slopes(program: DeviceProgram) -> None:
    """The derivative of a program along a direction is the slope of its values.

    The derivative is found by jvp, the slope by differences.

    Source: law 17 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> def total(x):
        ...     return lax.psum(x * x, "x")
        >>> x = np.arange(4, dtype=np.float32)
        >>> laws.derivatives_are_slopes(laws.program_of(total, {"x": 4}, jax.P("x"), jax.P(), x))
    """
    check_vma = "checked" in program.modes
    f = _Floats(program, whole_function(program, check_vma=check_vma))
    if not f.point:
        return
    tangents = directions(f.point, 3)
    step = 2.0**-6

    def along(point: Sequence[Array], tangents: Sequence[Array]) -> Any:
        _, moved = jvp(f, tuple(point), tuple(tangents))
        ahead = f(*(x + t * step for x, t in zip(point, tangents, strict=True)))
        behind = f(*(x - t * step for x, t in zip(point, tangents, strict=True)))
        return moved, ahead, behind

    moved, ahead, behind = oracle.simulate_program(along)(f.point, tangents)
    for k, (slope, a, b) in enumerate(zip(moved, ahead, behind, strict=True)):
        found = (np.asarray(a, np.float64) - np.asarray(b, np.float64)) / (2 * step)
        # Rounding of the values, and the third derivative, of which tanh has a little.
        scale = 1 + np.abs(found).max(initial=0) + np.abs(np.asarray(a)).max(initial=0)
        if not np.all(np.abs(found - slope) <= 2e-2 * scale):
            raise AssertionError(
                message(
                    "laws.derivatives_are_slopes",
                    f"result {k}: by jvp\n{slope}\nby differences\n{found}",
                    expected=statement_of(derivatives_are_slopes),
                )
                + f"\nprogram\n{program!r}"
            )


def gradients_agree(
    program: DeviceProgram,
    whole: Callable[..., Any] | None = None,
    *,
    check_vma: bool | None = None,
) -> None:
    """The gradient of a program on many devices is that of what it computes, on one.

    Source: of the project; JAX has nothing like it.

    Args:
        program: the program.
        whole: the same function of whole arrays, without collectives; by default the program with
            `vmap(axis_name=...)` in place of devices.
        check_vma: the setting to try; those that the program is for by default.

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

    floats = [i for i, x in enumerate(program.inputs) if _is_float(x)]
    if not floats:
        return
    point = [program.inputs[i] for i in floats]
    at = tuple(range(len(floats)))
    if whole is None:
        whole = programs.unsharded(program)
    expected = list(grad(loss(whole), at)(*point))
    for checks in modes_of(program) if check_vma is None else (check_vma,):
        found = list(grad(loss(programs.mapped(program, check_vma=checks)), at)(*point))
        sides = {"the sharded program's gradient": found, "the unsharded one's": expected}
        check_agree("laws.gradients_agree", sides, program, statement_of(gradients_agree))
