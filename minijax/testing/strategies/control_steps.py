"""Steps of generated programs that hold functions: loops, branches, `vmap`, `jit`, `checkpoint`.

What a function inside may do follows from what is around it: no collective over axes over which a
predicate varies, and carries that vary over everything from the start.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from minijax.testing.strategies.local_steps import NUMBERS, pick
from minijax.testing.strategies.scope import Draw, Scope, Variable, inserted, replaced

Fill = Callable[[Draw, Scope, int], None]
"""Adds up to a number of steps to the body of a function."""

MOST_STEPS = 3


def fitting_result(draw: Draw, scope: Scope, like: Variable) -> Variable:
    """A result of the shape and dtype of `like`, the latest being the simplest."""
    found = [v for v in scope.own() if (v.shape, v.dtype) == (like.shape, like.dtype)]
    result: Variable = draw(st.sampled_from([*found[::-1], like]))
    return result


def any_result(draw: Draw, scope: Scope, parameter: Variable) -> Variable:
    """Any variable of a function, the latest being the simplest."""
    result: Variable = draw(st.sampled_from([*scope.own()[::-1], parameter]))
    return result


def everything(scope: Scope, x: Variable) -> frozenset[str]:
    """All axes over which a value in this scope may ever vary."""
    return x.varying | frozenset(scope.sizes) | frozenset(scope.mesh_axes)


def scan(draw: Draw, scope: Scope, fill: Fill) -> bool:
    """A loop that carries one value, over the rows of another or a number of times."""
    x = pick(draw, scope, *NUMBERS)
    if x is None:
        return False
    rows = [v for v in scope.variables[::-1] if v.ndim and v.shape[0] <= 4]
    xs = draw(st.sampled_from([None, *rows]))
    length = draw(st.integers(1, 3)) if xs is None else xs.shape[0]
    start = scope.cast(x, everything(scope, x))
    body = scope.inner()
    carry = body.parameter(x.shape, x.dtype, start.varying)
    parameters = [carry]
    if xs is None:
        parameters.append(Variable("_", (), "int32"))
    else:
        parameters.append(body.parameter(xs.shape[1:], xs.dtype, xs.varying))
    fill(draw, body, MOST_STEPS)
    stacked = draw(st.sampled_from([None, *body.own()]))
    result = body.cast(fitting_result(draw, body, carry), start.varying)
    name = f"body_{scope.fresh()}"
    results = [result] if stacked is None else [result, stacked]
    code = body.code(name, parameters, results, "{}, None" if stacked is None else "{}")
    outs = [Variable(scope.fresh(), x.shape, x.dtype, start.varying)]
    if stacked is not None:
        shape = (length, *stacked.shape)
        outs.append(Variable(scope.fresh(), shape, stacked.dtype, stacked.varying))
    targets = ", ".join([*(v.name for v in outs), *(["_"] if stacked is None else [])])
    given = f"None, length={length}" if xs is None else xs.name
    uses = code.uses | {start.name} | (set() if xs is None else {xs.name})
    call = f"{targets} = lax.scan({name}, {start.name}, {given})"
    scope.define([*code.lines, call], uses, code.size + 1, outs)
    return True


def cond(draw: Draw, scope: Scope, fill: Fill) -> bool:
    """One of two branches, chosen by a number that may differ between devices."""
    x = pick(draw, scope, *NUMBERS)
    numbers = [v for v in scope.variables[::-1] if v.dtype in ("int32", "bool") and not v.ndim]
    if x is None or not numbers:
        return False
    chooser = draw(st.sampled_from(numbers))
    test = chooser.name if chooser.dtype == "bool" else f"{chooser.name} % 2 == 0"
    branches = []
    for _ in range(2):
        branch = scope.inner(without=chooser.varying)
        parameter = branch.parameter(x.shape, x.dtype, x.varying)
        fill(draw, branch, MOST_STEPS)
        branches.append((branch, parameter, fitting_result(draw, branch, parameter)))
    varying = frozenset[str]().union(*(result.varying for _, _, result in branches))
    lines: list[str] = []
    names, uses, size = [], {x.name, chooser.name}, 1
    for branch, parameter, result in branches:
        names.append(f"branch_{scope.fresh()}")
        code = branch.code(names[-1], [parameter], [branch.cast(result, varying)])
        lines += code.lines
        uses |= code.uses
        size += code.size
    out = Variable(scope.fresh(), x.shape, x.dtype, varying | chooser.varying)
    lines.append(f"{out.name} = lax.cond({test}, {', '.join(names)}, {x.name})")
    scope.define(lines, uses, size, [out])
    return True


def while_loop(draw: Draw, scope: Scope, fill: Fill) -> bool:
    """A loop whose number of steps may differ between devices."""
    x = pick(draw, scope, *NUMBERS)
    numbers = [v for v in scope.variables[::-1] if v.dtype == "int32" and not v.ndim]
    if x is None or not numbers:
        return False
    count = draw(st.sampled_from(numbers))
    start = scope.cast(x, everything(scope, x))
    body = scope.inner(without=count.varying)
    step = Variable(scope.fresh(), (), "int32", count.varying)
    carry = body.parameter(x.shape, x.dtype, start.varying)
    fill(draw, body, MOST_STEPS)
    result = body.cast(fitting_result(draw, body, carry), start.varying)
    name = f"body_{scope.fresh()}"
    code = body.code(name, [step, carry], [result], f"{step.name} + 1, {{}}")
    code = code._replace(lines=(f"def {name}(carry):", *_unpacked(code.lines, step, carry)))
    out = Variable(scope.fresh(), x.shape, x.dtype, start.varying)
    test = f"lambda carry: carry[0] < {count.name} % 3"
    call = f"_, {out.name} = lax.while_loop({test}, {name}, (np.int32(0), {start.name}))"
    scope.define([*code.lines, call], code.uses | {start.name, count.name}, code.size + 1, [out])
    return True


def _unpacked(lines: tuple[str, ...], step: Variable, carry: Variable) -> tuple[str, ...]:
    """The lines of a function after its first, for a tuple as its only parameter."""
    return (f"    {step.name}, {carry.name} = carry", *lines[1:])


def vmap(draw: Draw, scope: Scope, fill: Fill) -> bool:
    """The same for each row, along an axis that may have a name."""
    x = pick(draw, scope, *NUMBERS, "bool", min_rank=1)
    if x is None or scope.depth > 1:
        return False
    dim = draw(st.integers(0, x.ndim - 1))
    size = x.shape[dim]
    axis = None if draw(st.integers(0, 3)) == 0 else f"b{scope.depth}"
    body = scope.inner(extra={} if axis is None else {axis: size})
    own = x.varying | ({axis} if axis else set())
    row = body.parameter(replaced(x.shape, dim), x.dtype, own)
    fill(draw, body, MOST_STEPS)
    result = any_result(draw, body, row)
    if result.ndim > 3:
        return False
    out_dim = draw(st.sampled_from(sorted({0, result.ndim})))
    name = f"row_{scope.fresh()}"
    code = body.code(name, [row], [result])
    out = Variable(
        scope.fresh(),
        inserted(result.shape, out_dim, size),
        result.dtype,
        result.varying - {axis},
    )
    options = "" if dim == 0 else f", in_axes={dim}"
    options += "" if out_dim == 0 else f", out_axes={out_dim}"
    options += "" if axis is None else f", axis_name={axis!r}"
    call = f"{out.name} = jax.vmap({name}{options})({x.name})"
    scope.define([*code.lines, call], code.uses | {x.name}, code.size + 1, [out])
    return True


def call(draw: Draw, scope: Scope, fill: Fill) -> bool:
    """A function inside `jit` or `checkpoint`."""
    x = pick(draw, scope, *NUMBERS, "bool")
    if x is None:
        return False
    body = scope.inner()
    parameter = body.parameter(x.shape, x.dtype, x.varying)
    fill(draw, body, MOST_STEPS)
    result = any_result(draw, body, parameter)
    name = f"inner_{scope.fresh()}"
    code = body.code(name, [parameter], [result])
    out = Variable(scope.fresh(), result.shape, result.dtype, result.varying)
    wrapper = draw(st.sampled_from(["jit", "checkpoint"]))
    text = f"{out.name} = jax.{wrapper}({name})({x.name})"
    scope.define([*code.lines, text], code.uses | {x.name}, code.size + 1, [out])
    return True


# Rules of batching are many, so vmap comes twice.
DIFFERENTIABLE = (vmap, scan, cond, vmap, call)
STEPS = (*DIFFERENTIABLE, while_loop)
