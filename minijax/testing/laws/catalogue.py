"""The catalogue of laws, and ways to try them on collectives and programs of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.runtime.array import Array
from minijax.testing.laws import executions
from minijax.testing.laws.collectives import (
    Case,
    Collective,
    Collectives,
    axis_of_one_changes_nothing,
    collectives_are_linear,
    exchange_inverts,
    extremes_mirror,
    gather_holds_own_block,
    index_is_mixed_radix,
    mean_is_sum_by_size,
    operations,
    permutations_compose,
    positions_of_extremes,
    psum_gathers_scatter,
    ragged_generalizes_exchange,
    reductions_go_axis_by_axis,
    shuffles_compose,
    start_and_done_are_one,
    statement_of,
    summands_are_sums,
)
from minijax.testing.oracle import MeshLike
from minijax.testing.programs import DeviceProgram, Specs, stacked

LACKING = {
    # Where types tell what varies, there are no groups.
    "groups": ("vmap", "gspmd", "eager"),
    "types": ("oracle_unchecked", "unchecked", "vmap", "pmap", "eager_pmap"),
    "ragged": ("vmap",),
}
"""What engines lack that a law may need."""


class Law(NamedTuple):
    """One law.

    Source: of the project; JAX has nothing like it.

    Attributes:
        number: in the catalogue.
        check: the law itself: it raises an `AssertionError` where it does not hold.
        subject: what it takes: `"collectives"` for a `Case`, `"program"` for a `DeviceProgram`.
        needs: what not all engines have: `"groups"`, `"types"` that tell what
            varies, or `"ragged"` exchanges.

    Example:
        >>> from minijax.testing import laws
        >>> laws.LAWS[1].statement
        'f(a·x + b·y) = a·f(x) + b·f(y) for every linear collective f.'
    """

    number: int
    check: Callable[..., str | None]
    subject: str = "collectives"
    needs: str = ""

    def can_be_tried_by(self, engine: str) -> bool:
        """Whether an engine has what the law needs."""
        return engine not in LACKING.get(self.needs, ())

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.check.__name__

    @property
    def statement(self) -> str:
        """What it says."""
        return statement_of(self.check)


LAWS: tuple[Law, ...] = (
    Law(1, psum_gathers_scatter),
    Law(2, collectives_are_linear),
    Law(3, reductions_go_axis_by_axis),
    Law(4, mean_is_sum_by_size),
    Law(5, extremes_mirror),
    Law(6, positions_of_extremes),
    Law(7, gather_holds_own_block),
    Law(8, exchange_inverts),
    Law(9, permutations_compose),
    Law(10, shuffles_compose),
    Law(11, ragged_generalizes_exchange, needs="ragged"),
    Law(12, executions.product_axis_is_one_axis),
    Law(13, executions.names_and_places_do_not_matter),
    Law(14, executions.groups_are_an_axis, needs="groups"),
    Law(15, executions.derivatives_are_adjoint, "program"),
    Law(16, executions.casts_are_dual, needs="types"),
    Law(17, executions.tangents_of_linear),
    Law(17, executions.gradients_of_linear),
    Law(17, executions.derivatives_are_slopes, "program"),
    Law(17, executions.gradients_are_slopes, "program"),
    Law(18, executions.executions_agree, "program"),
    Law(19, executions.vmap_stacks_results, "program"),
    Law(20, executions.checked_is_unchecked, "program"),
    Law(21, start_and_done_are_one),
    Law(22, summands_are_sums, needs="types"),
    Law(23, axis_of_one_changes_nothing),
    Law(24, index_is_mixed_radix),
    Law(25, executions.lowerings_agree, "program"),
)


def check_all(
    f: Callable[..., Any],
    mesh: MeshLike,
    in_specs: object,
    out_specs: Specs,
    *args: Any,
    laws: Iterable[int] | None = None,
    check_vma: bool | None = None,
) -> dict[str, str]:
    """Tries all laws of programs on a function of one device's blocks.

    Its values are the same however it is run, its derivatives are adjoint and are slopes, `vmap`
    stacks its results.  What has no derivative, such as integers, or `custom_vjp` in forward mode,
    is skipped.

    Source: of the project; JAX has nothing like it.

    Args:
        f: the function, as `shard_map` takes it.
        mesh: a mesh, or a dict of sizes by names.
        in_specs: for each argument, how it is cut.
        out_specs: how the results are put together.
        *args: whole arrays.
        laws: the numbers of those to try; all by default.
        check_vma: the setting that `f` is for, if not both.

    Returns:
        By the names of the laws: `"holds"`, or `"skipped: "` and why.

    Raises:
        AssertionError: a law does not hold; the text shows both sides and the program.

    Example:
        >>> from minijax.testing import laws
        >>> def layer(x, w):
        ...     return lax.psum(x @ w, "x")
        >>> x, w = np.ones((2, 8), np.float32), np.ones((8, 3), np.float32)
        >>> specs = (jax.P(None, "x"), jax.P("x"))
        >>> laws.check_all(layer, {"x": 4}, specs, jax.P(), x, w, laws=[15, 20])
        {'derivatives_are_adjoint': 'holds', 'checked_is_unchecked': 'holds'}
        >>> laws.check_all(layer, {"x": 4}, specs, jax.P(), x.astype(int), w.astype(int), laws=[15])
        {'derivatives_are_adjoint': 'skipped: no argument is a float'}
    """
    program = program_of(f, mesh, in_specs, out_specs, *args, check_vma=check_vma)
    found = {}
    for law in LAWS:
        if law.subject == "program" and (laws is None or law.number in laws):
            skipped = law.check(program)
            found[law.name] = f"skipped: {skipped}" if skipped else "holds"
    return found


def program_of(
    f: Callable[..., Any],
    mesh: MeshLike,
    in_specs: object,
    out_specs: Specs,
    *args: Any,
    check_vma: bool | None = None,
) -> DeviceProgram:
    """A function of one device's blocks, with its mesh, specs and whole arguments, as a program.

    Source: of the project; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.program_of(jnp.sin, {"x": 4}, jax.P("x"), jax.P("x"), np.ones(8))
        sin on mesh {'x': 4}
        in_specs = (P('x'),)
        out_specs = P('x')
        inputs: float64[8]
    """
    sizes: dict[Any, int] = dict(mesh) if isinstance(mesh, Mapping) else dict(mesh.shape)
    specs = in_specs if isinstance(in_specs, (tuple, list)) and args else (in_specs,)
    if len(specs) != len(args):
        specs = [in_specs] * len(args)
    modes = {None: {"checked", "unchecked"}, True: {"checked"}, False: {"unchecked"}}[check_vma]
    return DeviceProgram(f, sizes, specs, out_specs, args, modes=frozenset(modes))


def check_collectives(
    mesh: Mapping[str, int] | Sequence[int] = (4,),
    axes: Sequence[str] | None = None,
    *,
    dtype: str = "int32",
    engine: str = "oracle",
    laws: Iterable[int] | None = None,
    **own: Callable[..., Any],
) -> list[str]:
    """Tries all laws of collectives that speak of those that are given.

    With `psum=my_ring_sum` all that is said of psum is tried on `my_ring_sum(x, axis_name)`.

    Source: of the project; JAX has nothing like it.

    Args:
        mesh: sizes by names of axes, or sizes alone.
        axes: the axes to go over; all by default.
        dtype: of the blocks.
        engine: which of `programs.ENGINES` runs them; the oracle needs no devices.
        laws: the numbers of those to try; all by default.
        **own: functions to take in place of those of `minijax.lax` with the same names; without
            any, all laws are tried on `minijax.lax` itself.

    Returns:
        The names of the laws that spoke of them, and behind a colon what they skipped, as has no
        derivative.

    Raises:
        AssertionError: a law does not hold; the text shows both sides.

    Example:
        >>> from minijax.testing import laws
        >>> def sum_of_gathered(x, axis_name):
        ...     return lax.all_gather(x, axis_name).sum(0)
        >>> laws.check_collectives({"x": 4}, psum=sum_of_gathered, laws=[1, 3])
        ['psum_gathers_scatter', 'reductions_go_axis_by_axis']
    """
    sizes = mesh if isinstance(mesh, Mapping) else dict(zip("xyz", mesh, strict=False))
    found = []
    for law in LAWS:
        if law.subject != "collectives" or not (laws is None or law.number in laws):
            continue
        if not law.can_be_tried_by(engine):
            continue
        for tiled in (False, True):
            collectives = Collectives(**own)
            case = Case(
                sizes,
                tuple(sizes) if axes is None else axes,
                dtype=dtype,
                tiled=tiled,
                engine=engine,
                collectives=collectives,
            )
            if own and not _speaks_of(law, case, own):
                continue
            skipped = law.check(case)
            found.append(f"{law.name}: skipped, {skipped}" if skipped else law.name)
    return list(dict.fromkeys(found))


def _speaks_of(law: Law, case: Case, own: Mapping[str, Any]) -> bool:
    """Whether a law asks for any of some collectives, found by trying it on those of `lax`."""
    probe = Collectives()
    law.check(case.changed(collectives=probe))
    return not probe.used.isdisjoint(own)


def programs_of(case: Case) -> list[DeviceProgram]:
    """Each collective by itself, as a program on which the laws of programs can be tried.

    Source: of the project; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> [p.function.__name__ for p in laws.programs_of(laws.Case({"x": 2}, ("x",)))][:3]
        ['psum', 'pmean', 'all_gather']
    """
    found = []
    for operation in operations(case).values():

        def function(x: Array, f: Collective = operation.apply) -> Any:
            return f(x, case.axes)

        function.__name__ = operation.name
        found.append(stacked(function, case.sizes, [case.blocks(*operation.shape)]))
    return found
