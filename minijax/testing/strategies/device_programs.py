"""The Hypothesis strategy of whole per-device programs, and the steps that hold functions.

A program is made of steps: those of `local_steps` and `collective_steps`, and here loops, branches,
`vmap`, `jit` and `checkpoint`.  What a function inside may do follows from what is around it: no
collective over axes over which a predicate varies, and carries that vary over everything from the
start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from minijax.core.meshes import PartitionSpec
from minijax.testing.programs import BOTH, DeviceProgram, Kind
from minijax.testing.strategies import arguments, collective_steps, local_steps
from minijax.testing.strategies.local_steps import (
    NUMBERS,
    Scope,
    Variable,
    inserted,
    pick,
    replaced,
)

Fill = Callable[[Any, Scope, int], None]
"""Adds up to a number of steps to the body of a function."""

MOST_STEPS = 3


def fitting_result(draw: Any, scope: Scope, like: Variable) -> Variable:
    """A result of the shape and dtype of `like`, the latest being the simplest."""
    found = [v for v in scope.own() if (v.shape, v.dtype) == (like.shape, like.dtype)]
    result: Variable = draw(st.sampled_from([*found[::-1], like]))
    return result


def any_result(draw: Any, scope: Scope, parameter: Variable) -> Variable:
    """Any variable of a function, the latest being the simplest."""
    result: Variable = draw(st.sampled_from([*scope.own()[::-1], parameter]))
    return result


def everything(scope: Scope, x: Variable) -> frozenset[str]:
    """All axes over which a value in this scope may ever vary."""
    return x.varying | frozenset(scope.sizes) | frozenset(scope.mesh_axes)


def scan(draw: Any, scope: Scope, fill: Fill) -> bool:
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


def cond(draw: Any, scope: Scope, fill: Fill) -> bool:
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


def while_loop(draw: Any, scope: Scope, fill: Fill) -> bool:
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


def vmap(draw: Any, scope: Scope, fill: Fill) -> bool:
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
        scope.fresh(), inserted(result.shape, out_dim, size), result.dtype, result.varying - {axis}
    )
    options = "" if dim == 0 else f", in_axes={dim}"
    options += "" if out_dim == 0 else f", out_axes={out_dim}"
    options += "" if axis is None else f", axis_name={axis!r}"
    call = f"{out.name} = jax.vmap({name}{options})({x.name})"
    scope.define([*code.lines, call], code.uses | {x.name}, code.size + 1, [out])
    return True


def call(draw: Any, scope: Scope, fill: Fill) -> bool:
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


SIZES: tuple[tuple[int, ...], ...] = (
    (2,),
    (1,),
    (4,),
    (2, 2),
    (3,),
    (2, 1),
    (1, 2),
    (2, 4),
    (4, 2),
    (2, 2, 2),
    (8,),
    (2, 3),
)
MAX_RESULTS = 4


@st.composite
def device_programs(
    draw: st.DrawFn,
    *,
    sizes: Mapping[str, int] | None = None,
    num_devices: int | None = None,
    max_steps: int = 10,
    modes: frozenset[str] = BOTH,
    dtypes: Sequence[str] = ("int32", "float32", "bool", "uint8"),
    control_flow: bool = True,
    differentiable: bool = False,
    collectives: Sequence[Callable[[Any, Scope], bool]] | None = None,
) -> DeviceProgram:
    """Per-device programs, well typed by construction, that print as code.

    They hold arithmetic, collectives over any axes in any order, loops, branches, and functions
    under `vmap`, `jit` and `checkpoint`; every branch and loop is such that no device waits for
    another that never comes.  Failures shrink to programs of few operations.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        sizes: the mesh; any of one to three axes by default.
        num_devices: how many devices meshes have, if not up to eight.
        max_steps: how many operations a program has at most, those inside functions apart.
        modes: the settings of `check_vma` that programs must be valid for: with `"unchecked"`
            alone there are groups, with `"checked"` alone there are unreduced and reduced values.
        dtypes: the dtypes of arguments.
        control_flow: whether there are functions inside.
        differentiable: whether the results are differentiable in arguments of floats, so that there
            are no `while` loops, `pmax` and `pmin`.
        collectives: the steps that communicate, instead of all.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> program = find(strategies.device_programs(), lambda p: "psum(" in p.source)
        >>> "v1 = lax.psum(v0, 'x')" in program.source
        True
    """
    if sizes is None:
        fitting = [s for s in SIZES if num_devices in (None, math.prod(s))]
        shape = draw(st.sampled_from(fitting))
        sizes = dict(zip("xyz", shape, strict=False))
    scope = Scope(sizes, tuple(sizes), modes=modes)
    given = [_argument(draw, scope, dtypes) for _ in range(draw(st.integers(1, 3)))]
    choose = _Chooser(collectives, modes, control_flow, differentiable)
    choose.fill(draw, scope, max_steps)
    results = _results(draw, scope, [variable for variable, _, _ in given])
    parameters = [variable for variable, _, _ in given]
    code = scope.code("program", parameters, [variable for variable, _ in results])
    out_specs = [spec for _, spec in results]
    return DeviceProgram.from_source(
        "\n".join(code.lines),
        sizes,
        [spec for _, spec, _ in given],
        out_specs[0] if len(results) == 1 else tuple(out_specs),
        [text for _, _, text in given],
        size=code.size,
        modes=modes,
        kinds=[Kind(v.shape, v.dtype, v.varying) for v, _ in results],
    )


class _Chooser:
    """Which steps a program may have, and a way to add some."""

    def __init__(
        self,
        collectives: Sequence[Any] | None,
        modes: frozenset[str],
        control_flow: bool,
        differentiable: bool,
    ) -> None:
        chosen = list(collective_steps.STEPS if collectives is None else collectives)
        if collectives is None and "unchecked" not in modes:
            chosen += collective_steps.OF_SUMS
        if differentiable:
            chosen = [
                collective_steps.psum if s is collective_steps.all_reduce else s for s in chosen
            ]
        self.collectives = chosen
        self.control: Sequence[Any] = ()
        if control_flow:
            self.control = DIFFERENTIABLE if differentiable else STEPS

    def fill(self, draw: Any, scope: Scope, most: int) -> None:
        """Adds up to `most` steps to a function."""
        kinds = ["collective", "collective", "collective", "local", "local"]
        if self.control and scope.depth < 2:
            kinds += ["control", "control"]
        for _ in range(draw(st.integers(1, most))):
            # What is drawn may not fit: often there is nothing of the shape that it needs.
            if not self._step(draw, scope, kinds):
                self._step(draw, scope, kinds)

    def _step(self, draw: Any, scope: Scope, kinds: Sequence[str]) -> bool:
        kind = draw(st.sampled_from(kinds))
        if kind == "control":
            return bool(draw(st.sampled_from(self.control))(draw, scope, self.fill))
        steps = local_steps.STEPS if kind == "local" else self.collectives
        return bool(draw(st.sampled_from(steps))(draw, scope))


def _argument(
    draw: Any, scope: Scope, dtypes: Sequence[str]
) -> tuple[Variable, PartitionSpec, str]:
    """A parameter, how it is cut, and a whole argument for it."""
    total = math.prod(scope.sizes.values())
    lengths = list(dict.fromkeys([*scope.sizes.values(), total, 2, 1, 3]))
    ndim = draw(st.sampled_from([1, 2, 0, 3] if total < 8 else [1, 2, 0]))
    block = [draw(st.sampled_from(lengths)) for _ in range(ndim)]
    entries: list[list[str]] = [[] for _ in block]
    for name in scope.sizes:
        at = draw(st.integers(-1, ndim - 1)) if entries else -1
        if at >= 0:
            entries[at].append(name)
    spec = PartitionSpec(*(_entry(names) for names in entries))
    whole = [
        n * math.prod(scope.sizes[name] for name in names)
        for n, names in zip(block, entries, strict=True)
    ]
    dtype = draw(st.sampled_from(list(dtypes)))
    text = arguments.pattern(whole, dtype, draw(st.sampled_from((5, 1, 2, 3, 7, 11))))
    return scope.parameter(block, dtype, map(str, spec.names())), spec, text


def _entry(names: Sequence[str]) -> Any:
    return None if not names else names[0] if len(names) == 1 else tuple(names)


def _results(
    draw: Any, scope: Scope, parameters: Sequence[Variable]
) -> list[tuple[Variable, PartitionSpec]]:
    """What a program returns: what nothing else uses, each with a spec that types allow."""
    found = scope.leaves()[-MAX_RESULTS:] or list(parameters[:1])
    return [_result(draw, scope, variable) for variable in found]


def _result(draw: Any, scope: Scope, x: Variable) -> tuple[Variable, PartitionSpec]:
    axes = [a for a in scope.mesh_axes if a in x.varying]
    if not axes:
        return x, PartitionSpec()
    if not x.ndim:
        x = scope.let(f"lax.reshape({x.name}, (1,))", [x], (1,), x.dtype, x.varying, size=0)
    dim = draw(st.integers(0, x.ndim - 1))
    return x, PartitionSpec(*[None] * dim, _entry(axes))
