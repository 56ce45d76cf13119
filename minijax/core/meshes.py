"""Meshes without devices, and specs: which mesh axes split which dimensions of an array.

`PartitionSpec` has an entry for each dimension: the part of placements, and of types, that speaks
of names.  `AbstractMesh` is a mesh without devices: names, sizes and types of axes.

The mesh in force is thread-local: `abstract_mesh` is what programs are traced with and part of
the keys of traces; `device_context` is a mesh with devices, which only calls and compilation see.
"""

from __future__ import annotations

import enum
import math
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from jaxlib import _jax

from minijax.core import deferral, source
from minijax.core.cache import Cache
from minijax.core.errors import error
from minijax.core.operators import AxisName
from minijax.core.sequences import Mark

if TYPE_CHECKING:
    from minijax.core.native import Config

NO_NAMES: frozenset[AxisName] = frozenset()


MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")
"""The kinds of memory that devices may have; the first is the default where none is known."""


class Space(enum.Enum):
    """A memory of devices, whichever these are: a place for `device_put`.

    Source:     mirrors jax.memory.Space (0.10).

    Example:
        >>> x = jax.device_put(jnp.arange(3), jax.memory.Space.Host)
        >>> x.sharding.memory_kind
        'pinned_host'
        >>> jax.make_jaxpr(lambda x: jax.device_put(x, jax.memory.Space.Host))(x)
        { lambda ; a:i32[3]. let b:i32<host>[3] = device_put a in (b,) }
    """

    Device = 1
    Host = 2
    Any = 3

    @property
    def special_memory_kind(self) -> str | None:
        """The kind of memory; None for that which devices have by default."""
        return MEMORY_KINDS[1] if self is Space.Host else None

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    __str__ = __repr__


class UnconstrainedType(Mark):
    """The type of `PartitionSpec.UNCONSTRAINED`: the compiler decides about the dimension."""

    text = "UNCONSTRAINED"


UNCONSTRAINED = UnconstrainedType()


def _canonical(entry: object) -> Any:
    if isinstance(entry, (tuple, list)):
        names = tuple(entry)
        return None if not names else names[0] if len(names) == 1 else names
    return entry


@source.boundaries("__init__", "update", "index", "__add__", "__radd__")
class PartitionSpec:
    """The mesh axes that each dimension is split over, one entry for each dimension.

    An entry is None (not split), the name of a mesh axis, a tuple of names (the first is the
    outermost), or `PartitionSpec.UNCONSTRAINED`.  Dimensions without an entry are not split.

    Args:
        *entries: one for each dimension, from the first on.
        unreduced: mesh axes over which the devices hold summands of the value.
        reduced: mesh axes over which the value is one sum, whose cotangent is unreduced.

    Raises:
        ValueError: an axis is both unreduced and reduced, or one of these and in an entry.

    Example:
        >>> spec = jax.P("data", None, ("x", "y"))
        >>> spec[2], jax.P("data") == jax.P("data", None)
        (('x', 'y'), False)
    """

    __slots__ = ("_entries", "_hash", "reduced", "unreduced")

    UNCONSTRAINED: ClassVar[UnconstrainedType] = UNCONSTRAINED
    _entries: tuple[Any, ...]
    unreduced: frozenset[AxisName]
    reduced: frozenset[AxisName]

    def __init__(
        self,
        *entries: object,
        unreduced: Iterable[AxisName] = NO_NAMES,
        reduced: Iterable[AxisName] = NO_NAMES,
    ) -> None:
        self._entries = tuple(map(_canonical, entries))
        self.unreduced = _names(unreduced, "unreduced")
        self.reduced = _names(reduced, "reduced")
        self._hash = hash((self._entries, self.unreduced, self.reduced))
        if self.unreduced or self.reduced:
            self._check_sets()

    def _check_sets(self) -> None:
        used = set(self.names())
        for both, where in (
            (self.unreduced & self.reduced, "both unreduced and reduced"),
            (self.unreduced & used, "both unreduced and in an entry"),
            (self.reduced & used, "both reduced and in an entry"),
        ):
            if both:
                problem = f"axes are {where}: {sorted(map(str, both))}."
                expected = "each axis in one place only"
                error(ValueError, "PartitionSpec", problem, got=repr(self), expected=expected)

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The entries."""
        return self._entries

    def names(self) -> Iterator[AxisName]:
        """The mesh axes of the entries, from the first dimension on."""
        for entry in self._entries:
            yield from names_of(entry)

    def dims(self, ndim: int) -> tuple[tuple[AxisName, ...], ...]:
        """For each of `ndim` dimensions the axes it is split over; none for UNCONSTRAINED."""
        found = tuple(map(names_of, self._entries))
        return found + ((),) * (ndim - len(found))

    def padded(self, ndim: int) -> PartitionSpec:
        """The same with an entry for each of `ndim` dimensions."""
        missing = ndim - len(self._entries)
        return self.with_entries((*self._entries, *[None] * missing)) if missing > 0 else self

    def with_entries(self, entries: Iterable[object]) -> PartitionSpec:
        """The same sets, with other entries."""
        return PartitionSpec(*entries, unreduced=self.unreduced, reduced=self.reduced)

    def inserted(self, dim: int, entry: object = None) -> PartitionSpec:
        """The spec of an array with one more dimension, at `dim`."""
        entries = self.padded(dim)._entries
        return self.with_entries([*entries[:dim], entry, *entries[dim:]])

    def update(self, **changes: Any) -> PartitionSpec:
        """This spec with some of `partitions`, `unreduced` and `reduced` replaced."""
        entries = changes.pop("partitions", self._entries)
        sets = {"unreduced": self.unreduced, "reduced": self.reduced, **changes}
        return PartitionSpec(*entries, **sets)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries)

    def __getitem__(self, index: Any) -> Any:
        return self._entries[index]

    def index(self, value: object) -> int:
        """The first dimension with this entry."""
        return self._entries.index(_canonical(value))

    def count(self, value: object) -> int:
        """How many dimensions have this entry."""
        return self._entries.count(_canonical(value))

    def __add__(self, other: object) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(
                *self._entries,
                *other,
                unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
            )
        if isinstance(other, tuple):
            return self.with_entries((*self._entries, *other))
        return NotImplemented

    def __radd__(self, other: object) -> PartitionSpec:
        if isinstance(other, tuple):
            return self.with_entries((*other, *self._entries))
        return NotImplemented

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, PartitionSpec) and (
            (self._entries, self.unreduced, self.reduced)
            == (other._entries, other.unreduced, other.reduced)
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        parts = [repr(e) for e in self._entries]
        for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if axes:
                parts.append(f"{name}={{{', '.join(sorted(map(repr, axes)))}}}")
        # As a tuple of one is written, so that entries and sets are told apart at a glance.
        comma = "," if len(self._entries) == len(parts) == 1 else ""
        return f"P({', '.join(parts)}{comma})"

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle, (self._entries, self.unreduced, self.reduced)


def _unpickle(entries: Sequence[object], unreduced: Any, reduced: Any) -> PartitionSpec:
    return PartitionSpec(*entries, unreduced=unreduced, reduced=reduced)


def _names(axes: Any, name: str) -> frozenset[AxisName]:
    if isinstance(axes, str):
        problem = f"{name} must be a set of names."
        error(TypeError, "PartitionSpec", problem, got=repr(axes), fix=f"{name}={{{axes!r}}}")
    found = frozenset(axes) if axes else NO_NAMES
    if None in found:
        problem = f"{name} must not contain None."
        expected = "names of mesh axes"
        error(ValueError, "PartitionSpec", problem, got=f"{name}={set(found)}", expected=expected)
    return found


def axes_text(names: Sequence[AxisName]) -> str:
    """One name of an axis, or several, as types show them: `x` or `(x,y)`."""
    return str(names[0]) if len(names) == 1 else f"({','.join(map(str, names))})"


def names_of(entry: object) -> tuple[AxisName, ...]:
    """The mesh axes that one entry of a spec names."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


class AxisType(enum.Enum):
    """Who decides how arrays are split over a mesh axis.

    Example:
        >>> mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        >>> mesh.axis_types, jax.make_mesh((8,), ("x",)).axis_types
        ((Auto,), (Explicit,))
    """

    Auto = "auto"
    """The compiler; types do not show it."""
    Explicit = "explicit"
    """The types: operations carry shardings on by rules, and conflicts are errors."""
    Manual = "manual"
    """The program, which is written for one device: inside `shard_map`."""
    # The names of earlier versions.
    User = Explicit
    Collective = Manual

    def __repr__(self) -> str:
        return self.name


class MeshAxes:
    """Base of meshes: an ordered set of named axes.

    Attributes:
        axis_names: the names, the outermost axis first.
        axis_sizes: their sizes.
        axis_types: their types.
    """

    __slots__ = ()

    axis_names: tuple[AxisName, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]
    _repr_html_ = deferral.shown

    @property
    def shape(self) -> OrderedDict[AxisName, int]:
        """Sizes by name."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[AxisName, int], ...]:
        """Pairs of name and size."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """How many devices there are; none for the empty mesh."""
        return math.prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """Whether there are no devices."""
        return self.size == 0

    def axis_size(self, name: AxisName) -> int:
        """The size of one axis."""
        return self.axis_sizes[self.axis_names.index(name)]

    def axis_type(self, name: AxisName) -> AxisType:
        """The type of one axis."""
        return self.axis_types[self.axis_names.index(name)]

    def _of_type(self, kind: AxisType) -> tuple[AxisName, ...]:
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return tuple(name for name, type_ in pairs if type_ is kind)

    @property
    def auto_axes(self) -> tuple[AxisName, ...]:
        """The axes that the compiler decides about."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[AxisName, ...]:
        """The axes that types speak of."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[AxisName, ...]:
        """The axes that the program is written per device of."""
        return self._of_type(AxisType.Manual)

    def _all_of_type(self, kind: AxisType) -> bool:
        return bool(self.axis_types) and all(t is kind for t in self.axis_types)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether every axis is of type Auto."""
        return self._all_of_type(AxisType.Auto)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether every axis is of type Explicit."""
        return self._all_of_type(AxisType.Explicit)

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether every axis is of type Manual."""
        return self._all_of_type(AxisType.Manual)

    def __str__(self) -> str:
        axes = ", ".join(f"{n!r}: {s}" for n, s in self.shape_tuple) or "()"
        return f"{type(self).__name__}({axes}, axis_types={self.axis_types})"

    __repr__ = __str__


@source.boundaries("__new__", "update", "update_axis_types", "__enter__")
class AbstractMesh(MeshAxes):
    """A mesh of no particular devices: names, sizes and types of its axes.

    Interned: equal facts give the same object.  Programs traced and lowered with it run on any
    devices of that number.

    Args:
        axis_sizes: the sizes; or, alone, pairs of name and size.
        axis_names: the names.
        axis_types: one type for each axis, or one for all; Auto by default.

    Raises:
        ValueError: numbers of sizes, names or types differ, or a name appears twice.
        TypeError: a type is not an `AxisType`.

    Example:
        >>> mesh = jax.sharding.AbstractMesh((1024, 8), ("data", "model"))
        >>> mesh.size, mesh.shape["model"]
        (8192, 8)
    """

    __slots__ = ("__weakref__", "axis_names", "axis_sizes", "axis_types")

    def __new__(
        cls, axis_sizes: Any, axis_names: Any = None, axis_types: Any = None
    ) -> AbstractMesh:
        if axis_names is None:
            pairs = tuple(axis_sizes)
            axis_sizes = tuple(size for _, size in pairs)
            axis_names = tuple(name for name, _ in pairs)
        sizes = (axis_sizes,) if isinstance(axis_sizes, int) else tuple(map(int, axis_sizes))
        names = canonical_names(axis_names, len(sizes), "AbstractMesh")
        key = sizes, names, canonical_types(axis_types, names, "AbstractMesh")
        found = _interned.get(key)
        if found is None:
            made = super().__new__(cls)
            made.axis_sizes, made.axis_names, made.axis_types = key
            with _lock:
                found = _interned.setdefault(key, made)
        return found

    def update(self, **changes: Any) -> AbstractMesh:
        """This mesh with some of its sizes, names and types replaced."""
        names = ("axis_sizes", "axis_names", "axis_types")
        return AbstractMesh(**{**{n: getattr(self, n) for n in names}, **changes})

    def update_axis_types(self, name_to_type: Mapping[AxisName, AxisType]) -> AbstractMesh:
        """This mesh with the types of some axes replaced."""
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return self.update(axis_types=tuple(name_to_type.get(n, t) for n, t in pairs))

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """Itself; meshes with devices have the same member."""
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return AbstractMesh, (self.axis_sizes, self.axis_names, self.axis_types)

    def __enter__(self) -> NoReturn:
        problem = "cannot be entered: it has no devices."
        fix = "with sharding.use_abstract_mesh(mesh):"
        error(ValueError, "AbstractMesh", problem, got=str(self), fix=fix)

    def __exit__(self, *_: object) -> None:
        """There is nothing to leave, but without this Python would not call `__enter__`."""

    def __getattr__(self, name: str) -> Any:
        if name in _OF_DEVICES:
            problem = f"has no {name}: it stands for any devices of its shape."
            fix = "use a Mesh with devices, such as minijax.make_mesh gives"
            error(ValueError, "AbstractMesh", problem, got=str(self), fix=fix)
        raise AttributeError(f"AbstractMesh has no attribute {name!r}")


_OF_DEVICES = frozenset(
    {"devices", "device_ids", "local_devices", "local_mesh", "is_multi_process", "_flat_devices"}
)
_interned = Cache(
    "abstract meshes",
    "abstract meshes, each one object",
    key="sizes, names, types of axes",
    owner="mesh",
    counted=False,
).interned()
# Threads that make one mesh at a time must get one object, as meshes are compared by identity.
_lock = threading.Lock()


def canonical_names(names: Any, rank: int, user: str) -> tuple[AxisName, ...]:
    """The names of a mesh's axes as a tuple.

    Raises:
        ValueError: there are not `rank` of them, one is None, or two are equal.
    """
    found = (names,) if isinstance(names, str) else tuple(names)
    if len(found) != rank:
        problem = "needs one name for each dimension of its devices."
        error(ValueError, user, problem, got=f"{rank} dimension(s), {len(found)} name(s): {found}")
    if any(name is None for name in found):
        error(ValueError, user, "the name of an axis must not be None.", got=str(found))
    if len(set(found)) != len(found):
        error(ValueError, user, "the names of the axes must differ.", got=str(found))
    return found


def canonical_types(types: Any, names: tuple[AxisName, ...], user: str) -> tuple[AxisType, ...]:
    """The types of a mesh's axes as a tuple; Auto where none are given.

    Raises:
        TypeError: one is not an `AxisType`.
        ValueError: there is not one for each name, or a dict names no axis of the mesh.
    """
    if types is None:
        return (AxisType.Auto,) * len(names)
    if isinstance(types, AxisType):
        return (types,) * len(names)
    if isinstance(types, Mapping):
        types = _types_by_name(types, names, user)
    found = tuple(types)
    wrong = next((t for t in found if not isinstance(t, AxisType)), None)
    if wrong is not None:
        problem = "axis_types must be members of AxisType."
        got = f"{wrong!r} of type {type(wrong).__name__}"
        expected = "AxisType.Auto, AxisType.Explicit or AxisType.Manual"
        error(TypeError, user, problem, got=got, expected=expected)
    if len(found) != len(names):
        problem = "needs one axis type for each axis."
        error(
            ValueError, user, problem, got=f"{len(names)} axes {names}, {len(found)} types {found}"
        )
    return found


def _types_by_name(
    types: Mapping[AxisName, Any], names: tuple[AxisName, ...], user: str
) -> list[Any]:
    by_name: dict[AxisName, Any] = {}
    for kind, axes in types.items():
        for name in (axes,) if isinstance(axes, str) else tuple(axes):
            by_name[name] = kind
    strange = [name for name in by_name if name not in names]
    if strange:
        error(ValueError, user, f"axis_types names no axis of the mesh: {strange}.", got=str(names))
    return [by_name.get(name, AxisType.Auto) for name in names]


EMPTY = AbstractMesh((), ())

abstract_mesh: Config[AbstractMesh] = _jax.config.Config(
    "minijax_abstract_mesh", EMPTY, include_in_jit_key=True, include_in_trace_context=True
)
"""The mesh that programs are traced with; `EMPTY` where there is none."""

device_context: Config[Any] = _jax.config.Config(
    "minijax_device_context", None, include_in_jit_key=True
)
"""The mesh whose devices computations without committed arguments use; None: one device."""


def get_abstract_mesh() -> AbstractMesh:
    """The abstract mesh in force; empty by default.

    Example:
        >>> jax.sharding.get_abstract_mesh().empty
        True
        >>> with jax.set_mesh(jax.make_mesh((8,), ("x",))):
        ...     print(jax.sharding.get_abstract_mesh().axis_names)
        ('x',)
    """
    mesh: AbstractMesh = abstract_mesh.value
    return mesh


def names_text(names: Sequence[AxisName]) -> str:
    """Names of axes as messages show them."""
    return ", ".join(repr(name) for name in names) or "none"
