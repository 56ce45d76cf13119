"""The Hypothesis strategy of whole per-device programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from minijax.core.specs import PartitionSpec
from minijax.testing.programs import BOTH, DeviceProgram, Kind
from minijax.testing.strategies import collective_steps, control_steps, local_steps, values
from minijax.testing.strategies.scope import Draw, Scope, Variable

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
    draw: Any,
    *,
    sizes: Mapping[str, int] | None = None,
    num_devices: int | None = None,
    max_steps: int = 10,
    modes: frozenset[str] = BOTH,
    dtypes: Sequence[str] = ("int32", "float32", "bool", "uint8"),
    control_flow: bool = True,
    differentiable: bool = False,
    collectives: Sequence[Callable[[Draw, Scope], bool]] | None = None,
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
    arguments = [_argument(draw, scope, dtypes) for _ in range(draw(st.integers(1, 3)))]
    choose = _Chooser(collectives, modes, control_flow, differentiable)
    choose.fill(draw, scope, max_steps)
    results = _results(draw, scope, [variable for variable, _, _ in arguments])
    parameters = [variable for variable, _, _ in arguments]
    code = scope.code("program", parameters, [variable for variable, _ in results])
    out_specs = [spec for _, spec in results]
    return DeviceProgram.from_source(
        "\n".join(code.lines),
        sizes,
        [spec for _, spec, _ in arguments],
        out_specs[0] if len(results) == 1 else tuple(out_specs),
        [text for _, _, text in arguments],
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
            self.control = control_steps.DIFFERENTIABLE if differentiable else control_steps.STEPS

    def fill(self, draw: Draw, scope: Scope, most: int) -> None:
        """Adds up to `most` steps to a function."""
        kinds = ["collective", "collective", "collective", "local", "local"]
        if self.control and scope.depth < 2:
            kinds += ["control", "control"]
        for _ in range(draw(st.integers(1, most))):
            # What is drawn may not fit: often there is nothing of the shape that it needs.
            if not self._step(draw, scope, kinds):
                self._step(draw, scope, kinds)

    def _step(self, draw: Draw, scope: Scope, kinds: Sequence[str]) -> bool:
        kind = draw(st.sampled_from(kinds))
        if kind == "control":
            return bool(draw(st.sampled_from(self.control))(draw, scope, self.fill))
        steps = local_steps.STEPS if kind == "local" else self.collectives
        return bool(draw(st.sampled_from(steps))(draw, scope))


def _argument(
    draw: Draw, scope: Scope, dtypes: Sequence[str]
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
    text = values.pattern(whole, dtype, draw(st.sampled_from((5, 1, 2, 3, 7, 11))))
    return scope.parameter(block, dtype, spec.names()), spec, text


def _entry(names: Sequence[str]) -> Any:
    return None if not names else names[0] if len(names) == 1 else tuple(names)


def _results(
    draw: Draw, scope: Scope, parameters: Sequence[Variable]
) -> list[tuple[Variable, PartitionSpec]]:
    """What a program returns: what nothing else uses, each with a spec that types allow."""
    found = scope.leaves()[-MAX_RESULTS:] or list(parameters[:1])
    return [_result(draw, scope, variable) for variable in found]


def _result(draw: Draw, scope: Scope, x: Variable) -> tuple[Variable, PartitionSpec]:
    axes = [a for a in scope.mesh_axes if a in x.varying]
    if not axes:
        return x, PartitionSpec()
    if not x.ndim:
        x = scope.let(f"lax.reshape({x.name}, (1,))", [x], (1,), x.dtype, x.varying, size=0)
    dim = draw(st.integers(0, x.ndim - 1))
    return x, PartitionSpec(*[None] * dim, _entry(axes))
