"""What all placements have in common: which tile of an array each device holds.

A placement cuts each dimension into equal parts and gives every device one combination of parts.
Everything else, such as the indices each device holds, follows from these two facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from minijax.core import source
from minijax.core.aval import Shape
from minijax.core.cache import cached
from minijax.core.errors import IndivisibleError, error
from minijax.core.sequences import ByValue, Mark
from minijax.sharding import hlo
from minijax.sharding.hlo import Tiling
from minijax.sharding.mesh import DeviceList, device_list, is_local

Index = tuple[slice, ...]


class Sharding(ByValue):
    """Base of all descriptions of where the pieces of an array live.

    A subclass gives `device_assignment` and `tiling`.

    Example:
        >>> isinstance(jnp.ones(3).sharding, jax.sharding.Sharding)
        True
        >>> spread = jax.NamedSharding(jax.make_mesh((4, 2), ("x", "y")), jax.P("x"))
        >>> spread.shard_shape((8, 3)), spread.num_devices, spread.is_fully_replicated
        ((2, 3), 8, False)
    """

    __slots__ = ()

    # That of a subclass, where it has one: None where it is the devices' default.
    _memory_kind: str | None = None

    @property
    def unstacked_dims(self) -> tuple[int, ...]:
        """The dimensions that pieces do not have, as only those of `pmap` lack some."""
        return ()

    @property
    def device_assignment(self) -> tuple[Any, ...]:
        """The devices that hold a piece, in order."""
        raise NotImplementedError

    def tiling(self, ndim: int) -> Tiling:
        """How an array of rank `ndim` is cut."""
        raise NotImplementedError

    def factors(self, ndim: int) -> tuple[int, ...]:
        """Into how many parts each of `ndim` dimensions is cut."""
        return self.tiling(ndim).factors

    def check_rank(self, ndim: int) -> None:
        """Refuses arrays of too small a rank for this placement."""

    def to_hlo(self, ndim: int) -> Any:
        """XLA's description of how an array of rank `ndim` is cut."""
        return hlo.of_tiling(self.tiling(ndim))

    @property
    def devices(self) -> DeviceList:
        """The devices that hold a piece, as a list that knows more about them."""
        return device_list(self.device_assignment)

    @property
    def special_memory_kind(self) -> str | None:
        """The kind of memory, or None where it is the devices' default."""
        return self._memory_kind

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory; None if the devices do not tell."""
        return self.special_memory_kind or self.devices.default_memory_kind

    def with_memory_kind(self, kind: str | None) -> Sharding:
        """The same placement in another kind of memory."""
        raise NotImplementedError

    @property
    def device_set(self) -> set[Any]:
        """The devices that hold a piece."""
        return set(self.device_assignment)

    @property
    def num_devices(self) -> int:
        """How many devices hold a piece."""
        return len(self.device_assignment)

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process among them."""
        return set(self.devices.addressable_device_list)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can reach every piece."""
        return self.devices.is_fully_addressable

    @property
    def has_addressable_devices(self) -> bool:
        """Whether this process can reach some piece."""
        return len(self.devices.addressable_device_list) > 0

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        raise NotImplementedError

    def shard_shape(self, global_shape: Shape) -> Shape:
        """The shape of each piece of an array of shape `global_shape`.

        Raises:
            IndivisibleError: a dimension cannot be cut into equal parts.
            ValueError: the rank is too small.
        """
        shape = tuple(global_shape)
        self.check_rank(len(shape))
        factors = self.factors(len(shape))
        for dim, (size, factor) in enumerate(zip(shape, factors, strict=True)):
            if size % factor:
                problem = f"dimension {dim} of size {size} cannot be cut into {factor} equal parts."
                got = f"shape {shape}, {self}"
                expected = f"a multiple of {factor}"
                fix = "pad the array, or split the dimension over fewer devices"
                error(IndivisibleError, "sharding", problem, got=got, expected=expected, fix=fix)
        return tuple(size // factor for size, factor in zip(shape, factors, strict=True))

    def check_fits(self, shape: Shape, what: Callable[[], str]) -> None:
        """Refuses arrays of a shape that cannot be placed so; `what` names the value.

        Raises:
            IndivisibleError: a dimension cannot be cut into equal parts.
            ValueError: the rank is too small.
        """
        try:
            self.shard_shape(shape)
        except ValueError as error:
            text = str(error).removeprefix("sharding: ")
            raise type(error)(f"{what()}: {text}") from None

    def devices_indices_map(self, global_shape: Shape) -> dict[Any, Index]:
        """Which part of the array each device holds, as slices of each dimension."""
        shape = tuple(global_shape)
        return dict(zip(self.device_assignment, self.indices(shape), strict=True))

    def addressable_devices_indices_map(self, global_shape: Shape) -> dict[Any, Index]:
        """Which part of the array each device of this process holds."""
        everywhere = self.devices_indices_map(global_shape)
        return {d: index for d, index in everywhere.items() if is_local(d)}

    def indices(self, global_shape: Shape) -> list[Index]:
        """Which part of the array each device holds, in order of the devices."""
        return list(_indices(self, tuple(global_shape)))

    def is_equivalent_to(self, other: object, ndim: int) -> bool:
        """Whether both place an array of rank `ndim` alike."""
        if self is other:
            return True
        return (
            isinstance(other, Sharding)
            and self.device_assignment == other.device_assignment
            and self.special_memory_kind == other.special_memory_kind
            and self.unstacked_dims == other.unstacked_dims
            and self.tiling(ndim).same_as(other.tiling(ndim))
        )

    def _facts(self) -> Any:
        """What is equal for equal placements of one class."""
        return id(self)

    def _memory_text(self) -> str:
        """What texts say of the kind of memory."""
        return f", memory_kind={self.memory_kind}" if self.memory_kind else ""

    # The names by which programs that reach into JAX know these.

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        return self.device_assignment

    @property
    def _addressable_device_assignment(self) -> tuple[Any, ...]:
        return tuple(self.devices.addressable_device_list)

    @property
    def _internal_device_list(self) -> DeviceList:
        return self.devices

    def check_compatible_aval(self, aval_shape: Shape) -> None:
        """Refuses shapes of too small a rank for this placement."""
        self.check_rank(len(aval_shape))

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return self.to_hlo(ndim)


class Layout(ByValue):
    """In which order the elements of an array lie in memory.

    Args:
        major_to_minor: the dimensions, from the one along which neighbours are farthest apart to
            the one along which they are next to each other.
        tiling: sizes of the tiles that are contiguous, the outermost first; () for none, None for
            what the device has by default.
        sub_byte_element_size_in_bits: of elements that are smaller than bytes; 0 for others.

    Source:     mirrors jax.experimental.layout.Layout (0.10).

    Example:
        >>> from minijax.experimental.layout import Format, Layout
        >>> x = jnp.arange(6).reshape(2, 3)
        >>> x.format.layout.major_to_minor
        (0, 1)
        >>> by_columns = Format(Layout((1, 0)), x.sharding)
        >>> jax.device_put(x, by_columns).format.layout.major_to_minor
        (1, 0)
    """

    __slots__ = ("major_to_minor", "tiling", "sub_byte_element_size_in_bits")  # noqa: RUF023
    AUTO: ClassVar[Mark]

    def __init__(
        self,
        major_to_minor: Iterable[int],
        tiling: tuple[tuple[int, ...], ...] | None = None,
        sub_byte_element_size_in_bits: int = 0,
    ) -> None:
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = tiling
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    @property
    def is_usual(self) -> bool:
        """Whether that is the order of all arrays of which nobody says another: by rows."""
        return not self.tiling and self.major_to_minor == tuple(range(len(self.major_to_minor)))

    def update(self, **changes: Any) -> Layout:
        """This layout with some facts replaced."""
        return Layout(**{**{name: getattr(self, name) for name in self.__slots__}, **changes})

    def check_compatible_aval(self, shape: Shape) -> None:
        """Refuses arrays of another rank.

        Raises:
            ValueError: the layout does not name each dimension once.
        """
        if sorted(self.major_to_minor) != list(range(len(shape))):
            problem = "a layout names each dimension of the array once."
            got = f"major_to_minor={self.major_to_minor} for an array of shape {tuple(shape)}"
            error(ValueError, "Layout", problem, got=got, fix=f"Layout({tuple(range(len(shape)))})")

    @property
    def text(self) -> str:
        """The layout in XLA's notation, from minor to major."""
        tiles = "".join(f"({','.join(map(str, tile))})" for tile in self.tiling or ())
        order = ",".join(map(str, self.major_to_minor[::-1]))
        return f"{{{order}{tiles and ':T' + tiles}}}"

    def _facts(self) -> tuple[Any, ...]:
        return self.major_to_minor, self.tiling or (), self.sub_byte_element_size_in_bits

    def __repr__(self) -> str:
        return f"Layout({', '.join(f'{name}={getattr(self, name)}' for name in self.__slots__)})"


class _Auto(Mark):
    """The type of `Layout.AUTO`."""

    text = "AUTO"


Layout.AUTO = _Auto()


@source.boundaries("__init__")
class Format(ByValue):
    """How an array lies in memory, and on which devices.

    Args:
        layout: the order of the elements in memory; `Layout.AUTO` leaves it to the compiler.
        sharding: where the pieces are.

    Raises:
        TypeError: they are no such things.
        ValueError: a layout is given, and no sharding.

    Source:     mirrors jax.experimental.layout.Format (0.10).

    Example:
        >>> jnp.ones(3).format.layout
        Layout(major_to_minor=(0,), tiling=(), sub_byte_element_size_in_bits=0)
    """

    __slots__ = ("layout", "sharding")

    def __init__(self, layout: object = None, sharding: object = None) -> None:
        if not (layout is None or isinstance(layout, (Layout, _Auto))):
            got = f"{layout!r} of type {type(layout).__name__}"
            expected = "a Layout, Layout.AUTO or None"
            error(TypeError, "Format", "layout is no layout.", got=got, expected=expected)
        if not (sharding is None or isinstance(sharding, Sharding)):
            got = f"{sharding!r} of type {type(sharding).__name__}"
            problem = "sharding is no sharding."
            error(TypeError, "Format", problem, got=got, expected="a Sharding or None")
        if isinstance(layout, Layout) and sharding is None:
            problem = "a layout needs a sharding, which says on which devices."
            error(ValueError, "Format", problem, got=repr(layout), fix="Format(layout, x.sharding)")
        self.layout = layout
        self.sharding = sharding

    def __repr__(self) -> str:
        return f"Format(layout={self.layout!r}, sharding={self.sharding})"


@cached("slices", key="sharding, shape", most=1024, emptied=True)
def _indices(sharding: Sharding, shape: Shape) -> tuple[Index, ...]:
    """The slices of an array that each device holds."""
    shard = sharding.shard_shape(shape)
    tiling = sharding.tiling(len(shape))
    whole = slice(None)
    return tuple(
        tuple(
            whole if factor == 1 else slice(part * size, (part + 1) * size)
            for part, factor, size in zip(parts, tiling.factors, shard, strict=True)
        )
        for parts in tiling.coordinates.tolist()
    )
