"""The placements that users give to `jit` for arguments and results, as trees.

Input: a tree prefix of shardings.  Output: one placement, or None, for each flat value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import tree, tree_errors
from minijax.core.cache import Cache
from minijax.core.errors import NoMeshError, error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.specs import PartitionSpec
from minijax.interpreters import program, staging
from minijax.interpreters.reshard import reshard_to
from minijax.lax.shardings import sharding_constraint_p
from minijax.sharding import contexts, rules
from minijax.sharding.base import Sharding
from minijax.sharding.named import (
    UNSPECIFIED,
    NamedSharding,
    SingleDeviceSharding,
    has_open_dims,
    is_auto,
)


class PlacementTree:
    """A tree prefix of placements; hashable, so that it may be part of a cache's key."""

    __slots__ = ("_hash", "given", "leaves", "name", "structure")

    def __init__(self, name: str, given: Any) -> None:
        self.name = name
        self.given = given
        leaves, self.structure = tree.flatten(given, is_leaf=tree.is_none)
        self.leaves = tuple(_as_sharding(name, leaf) for leaf in leaves)
        self._hash = hash((self.leaves, self.structure))

    @classmethod
    def of(cls, name: str, given: Any) -> PlacementTree:
        """The tree of an argument of `jit`; one object where nothing is given."""
        return NOTHING if given is UNSPECIFIED or given is None else cls(name, given)

    def for_arguments(self, function: str, in_tree: Any) -> tuple[Any, ...]:
        """One placement for each flat argument.

        Raises:
            ValueError: there are keyword arguments, or the tree is no prefix of the arguments.
        """
        if self is NOTHING:
            return ()
        args, kwargs = tree.unflatten(in_tree, [0] * in_tree.num_leaves)
        if kwargs:
            error(
                ValueError,
                function,
                "in_shardings speaks of positional arguments only.",
                got=f"keyword arguments {sorted(kwargs)}",
                fix="pass them by position",
            )
        return self._spread(function, args, "args", "of the positional arguments that are traced")

    def for_results(self, function: str, out_tree: Any) -> tuple[Any, ...]:
        """One placement for each flat result.

        Raises:
            ValueError: the tree is no prefix of the results.
        """
        if self is NOTHING:
            return ()
        results = tree.unflatten(out_tree, [0] * out_tree.num_leaves)
        return self._spread(function, results, "result", "of the results")

    def _spread(self, function: str, whole: Any, name: str, what: str) -> tuple[Any, ...]:
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
            f"{self.name} is no tree prefix {what}.",
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


def _as_sharding(name: str, given: Any) -> Any:
    if given is None or given is UNSPECIFIED:
        return None
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
    error(
        TypeError,
        "jit",
        f"{name} holds something that is no placement.",
        got=f"{given!r} of type {type(given).__name__}",
        expected="shardings, PartitionSpecs under a mesh, or None",
    )


NOTHING = PlacementTree("shardings", UNSPECIFIED)


def check(
    function: str,
    name: str,
    shardings: Sequence[Any],
    avals: Sequence[Any],
    names: Sequence[str] | None,
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


_options = Cache(
    "resolved options",
    "options whose specs are placements on the mesh in force",
    key="the mesh in force",
    owner="jaxpr",
)


def resolved(closed: ClosedJaxpr, options: program.Options) -> program.Options:
    """The options of a program with bare specs resolved on the mesh in force."""
    if not (options.in_shardings or options.out_shardings):
        return options

    def make() -> program.Options:
        return options._replace(
            in_shardings=tuple(_resolved(s, "in_shardings") for s in options.in_shardings),
            out_shardings=tuple(_resolved(s, "out_shardings") for s in options.out_shardings),
        )

    return _options.of(closed, contexts.mesh_of_arrays(), make)


def _resolved(sharding: Any, name: str) -> Any:
    if isinstance(sharding, PartitionSpec):
        return contexts.resolve(sharding, f"jit's {name}")
    return sharding


def constrained(closed: ClosedJaxpr, options: program.Options) -> ClosedJaxpr:
    """A program whose equations say how its arguments and results are placed.

    So it can be called from other programs, and transformed, as any.
    """
    ins = tuple(_inside(s, "in_shardings") for s in options.in_shardings)
    outs = tuple(_inside(s, "out_shardings") for s in options.out_shardings)
    if not any([*ins, *outs]):
        return closed

    def function(*args: Any) -> list[Any]:
        results = staging.eval_closed_jaxpr(closed, *_placed(args, ins))
        return _placed(results, outs)

    def make() -> ClosedJaxpr:
        return staging.stage_closed(function, closed.in_avals, closed.jaxpr.debug_info)

    made: ClosedJaxpr = closed.remember(("constrained", ins, outs), make)
    return made


def _placed(values: Sequence[Any], shardings: Sequence[Any]) -> list[Any]:
    if not shardings:
        return list(values)
    return [x if s is None else _at(x, s) for x, s in zip(values, shardings, strict=True)]


def _at(x: Any, sharding: NamedSharding) -> Any:
    x = sharding_constraint_p.bind(x, sharding=sharding)
    if sharding.mesh.explicit_axes:
        x = reshard_to(x, rules.resolve(sharding, "jit"))
    return x


def _inside(sharding: Any, name: str) -> Any:
    """A placement as equations hold it; None where they need not say it."""
    if isinstance(sharding, PartitionSpec):
        return contexts.resolve_for_tracing(sharding, f"jit's {name}")
    return sharding if isinstance(sharding, NamedSharding) else None
