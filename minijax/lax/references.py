"""Mutable references: `new_ref`, `freeze`, and reading, writing and adding through references.

`Ref` is a reference outside of traces; inside, references are tracers that are indexed alike.  What
an operation does to the referenced value is its rule `discharge`; `interpreters/discharge.py`
rewrites whole programs with it.  References refuse values of another type, and values that are
batched, differentiated or varying over mesh axes where the reference is not.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from minijax.core import dtypes, printing, refs, source, vma
from minijax.core.aval import AbstractValue, ShapedArray, Typed, aval_of
from minijax.core.errors import ShardingTypeError, error
from minijax.core.jaxpr import Eqn
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Dual, Primitive, Tangents, Zero
from minijax.core.refs import AbstractRef, Cell
from minijax.core.trace import Detour, Params, Trace, Tracer
from minijax.core.value_placement import ManualAxisType
from minijax.interpreters import batching, casts, confinement, jvp, partial_eval, staging
from minijax.interpreters.structural import instantiate, to_batch_dim, zeros
from minijax.lax import creation, reference_indexing
from minijax.lax.families import Avals, BatchDims, Values, batch_unary, jvp_of_first
from minijax.lax.reference_indexing import Index, Located, Span, place_text
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules


def _refuse_foreign(ref: object, verb: str, kind: str, fix: str) -> NoReturn:
    problem = f"a {kind} value cannot be {verb} a reference from outside."
    error(ValueError, "ref", problem, got=str(aval_of(ref)), fix=fix)


def refuse_batched(ref: object, verb: str) -> NoReturn:
    """Refuses to put a batch into a reference that is not batched.

    Raises:
        ValueError: always.
    """
    _refuse_foreign(
        ref,
        verb,
        "vmapped",
        "pass the reference to the mapped function as an argument that is mapped too",
    )


def refuse_differentiated(ref: object, verb: str) -> NoReturn:
    """Refuses to put a differentiated value into a reference that is not differentiated.

    Raises:
        ValueError: always.
    """
    _refuse_foreign(
        ref,
        verb,
        "differentiated",
        "pass the reference to the differentiated function, with a tangent; or write "
        "lax.stop_gradient(x)",
    )


def check_varies_less(name: str, ref: object, value: object, operands: Sequence[Any]) -> None:
    """Refuses to write what varies over mesh axes over which the reference does not.

    Args:
        name: the operation.
        ref: what is written to.
        value: what is written, or a reference to it.
        operands: of the index.

    Raises:
        ValueError: the value varies over more, or the place does.
    """
    held = vma.of(aval_of(ref)).varying
    for what, x in (("value", value), *(("index", i) for i in operands)):
        aval = aval_of(x)
        more = vma.of(aval).varying - held
        if more:
            problem = f"the {what} varies over {casts.axes_text(more)}, and the reference does not."
            got = f"{what}: {aval}   ref: {aval_of(ref).str_short()}"
            expected = "a reference whose value may differ between the same devices"
            fix = f"new_ref({vma.difference(aval_of(ref), aval)}) where it is made"
            error(ValueError, name, problem, got=got, expected=expected, fix=fix)


def check_value(name: str, ref: AbstractRef, value: Any, index: Index) -> None:
    """Refuses a value whose type is not that of the elements at an index.

    Raises:
        ValueError: the shape or the dtype is another one.
    """
    facts = {"value": value, "ref": ref}
    if value.shape != index.shape:
        problem = "the value has another shape than what it is written to."
        expected = f"a value of shape {index.shape}; writing does not broadcast"
        error(ValueError, name, problem, got=facts, expected=expected)
    if value.dtype != ref.dtype:
        problem = "the value has another dtype than the reference."
        expected = f"{ref.dtype}; writing does not convert"
        fix = f"value.astype({getattr(ref.dtype, 'name', ref.dtype)!r})"
        error(ValueError, name, problem, got=facts, expected=expected, fix=fix)


def check_reference(name: str, ref: Any) -> AbstractRef:
    """The type of a reference to an array.

    Raises:
        ValueError: `ref` is something else.
    """
    if not refs.is_reference(ref):
        got = f"{type(ref).__name__}: {ref!r}"
        error(ValueError, name, "expected a reference.", got=got, fix="make one with new_ref(x)")
    aval: AbstractRef = ref.aval
    if aval.is_semaphore:
        fix = "semaphore_signal, semaphore_wait and semaphore_read, or a copy's .wait()"
        error(ValueError, name, "a semaphore is no array.", got=str(aval), fix=fix)
    return aval


class _RefType(type):
    """Makes traced references instances of `Ref`."""

    def __instancecheck__(cls, value: object) -> bool:
        if type.__instancecheck__(cls, value):
            return True
        return cls is Ref and isinstance(value, Tracer) and type(value.aval) is AbstractRef


@source.boundaries()
class Ref(Typed, Cell, metaclass=_RefType):
    """A place that holds an array and can be written.

    Source:     mirrors jax.Ref (0.10); made by `new_ref`.

    Example:
        >>> ref = jax.new_ref(jnp.zeros(3))
        >>> ref[1] = 5.0
        >>> ref[...]
        Array([0., 5., 0.], dtype=float32)
    """

    __slots__ = ()

    aval: AbstractRef

    @property
    def sharding(self) -> Any:
        """Where the value lives."""
        return self.read().sharding

    @property
    def format(self) -> Any:
        """How the value lies in memory, and where."""
        return self.read().format

    @property
    def committed(self) -> bool:
        """Whether the user has placed the value."""
        return self.read().committed

    @property
    def at(self) -> Indexer:
        """Parts of the reference as references: `ref.at[idx]`."""
        return Indexer(self)

    def __getitem__(self, index: object) -> Array:
        return get(self, index)

    def __setitem__(self, index: object, value: object) -> None:
        set(self, index, value)

    def addupdate(self, x: Array, idx: object = ()) -> None:
        """Adds `x` to the elements at an index."""
        addupdate(self, idx, x)

    def block_until_ready(self) -> Ref:
        """Waits until the value is computed."""
        self.read().block_until_ready()
        return self

    def __len__(self) -> int:
        return len(self.aval)

    def __iter__(self) -> NoReturn:
        error(
            TypeError, "iter", "a reference is no array.", got=str(self.aval), fix="iter(ref[...])"
        )

    def __array__(self, *_: Any, **__: Any) -> np.ndarray[Any, Any]:
        fix = "read its value: ref[...]"
        error(TypeError, "numpy.asarray", "a reference is no array.", got=str(self.aval), fix=fix)

    def __repr__(self) -> str:
        if self.is_frozen:
            return f"Ref(frozen, {self.aval.inner_aval.str_short()})"
        return f"Ref{repr(self.read()).removeprefix('Array')}"

    __str__ = __repr__


class View(Ref):
    """The elements of a reference at an index; reads and writes go to the reference.

    It exists in Python only: operations on references get the reference and the two indices
    composed, and others, which hold jaxprs, are applied to the elements.

    Attributes:
        root: the reference.
        located: the index, with its operands.
    """

    __slots__ = ("located", "root")

    def __init__(self, root: Any, located: Located) -> None:
        self.root = root
        self.located = located
        whole: Any = aval_of(root)
        self.aval = whole.with_shape(located.where.shape)
        if self.aval.split is not whole.split:
            self.aval = self.aval.to(aval_of(self.read()))

    @property
    def is_frozen(self) -> bool:
        return False

    def read(self) -> Any:
        """The elements."""
        return self.root[self.located]

    def write(self, value: Any) -> None:
        """Replaces the elements."""
        self.root[self.located] = value

    def within(self, index: object) -> Located:
        """Where the elements at an index of the part stand in the whole reference."""
        entries, operands = reference_indexing.parse(index, self.shape, "ref.at")
        return reference_indexing.composed(self.located, entries, operands)

    def __repr__(self) -> str:
        return f"{aval_of(self.root)}.at[...] of shape {self.shape}"


@source.boundaries()
class Indexer:
    """`ref.at`: index it to get a part of the reference."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Any) -> None:
        self._whole = whole

    def __getitem__(self, index: object) -> View:
        whole = self._whole
        if type(whole) is not View:
            found, operands = reference_indexing.parse(index, aval_of(whole).shape, "ref.at")
            return View(whole, Located(found, tuple(operands)))
        return View(whole.root, whole.within(index))


def _resolved(ref: object, index: object) -> tuple[Any, Any]:
    """A reference and an index of it; that of a part becomes one of the whole."""
    return (ref.root, ref.within(index)) if type(ref) is View else (ref, index)


def _selected_spec(primitive: Primitive, avals: Avals, index: Index) -> PartitionSpec:
    """The spec of the elements of a reference at an index, whose operands are the other types."""
    ref = avals[0]
    partial = [
        d
        for d, (entry, size) in enumerate(zip(index.entries, ref.shape, strict=True))
        if entry != Span(0, size, 1)
    ]
    rules.check_unsharded(primitive, avals[:1], partial)
    rules.check_unsharded(primitive, avals[1:])
    pairs = zip(rules.spec_of(ref), index.entries, strict=True)
    ranges = [names for names, entry in pairs if type(entry) is Span]
    new = [None] * (len(index.shape) - len(ranges))
    return PartitionSpec(*ranges[: index.position], *new, *ranges[index.position :])


def _stored_kind(primitive: Primitive, avals: Avals, outs: Avals, **params: Any) -> ManualAxisType:
    """Rule `vary` of writes: how the elements of a reference stand to mesh axes.

    Raises:
        ShardingTypeError: one of value and reference is unreduced or reduced, and not the other.
    """
    ref, value = (vma.of(aval) for aval in avals[:2])
    if ref[1:] != value[1:]:
        problem = "value and reference are not unreduced, or reduced, over the same axes."
        got = {"value": avals[1], "reference": avals[0].str_short()}
        fix = "lax.pcast(value, axis, to=...), or lax.psum, to the kind of the reference"
        error(ShardingTypeError, f"ref.{primitive.name}", problem, got=got, fix=fix)
    return ref


class NewRef(Primitive):
    """Makes a reference whose first value is `x`.

    It is one that a linear program writes if `is_tangent`.  Nothing to transpose: linear programs
    are discharged first.
    """

    name = "new_ref"
    has_effects: ClassVar[bool] = True

    def abstract_eval(self, x: ShapedArray, *, kind: Hashable, **_: Any) -> AbstractRef:
        return AbstractRef(x, kind=kind)

    def shard(self, avals: Avals, outs: Avals, **params: Any) -> PartitionSpec:
        return rules.spec_of(avals[0])

    def jvp(self, primals: Values, tangents: Tangents, *, is_tangent: bool, **params: Any) -> Dual:
        ref = self.bind(*primals, is_tangent=False, **params)
        tangent = tangents[0]
        if type(tangent) is Zero and tangent.aval.dtype == dtypes.float0:
            return ref, Zero.like(ref)
        return ref, self.bind(instantiate(tangent), is_tangent=True, **params)

    def batch(self, size: int, args: Values, dims: BatchDims, **params: Any) -> Batched:
        return self.bind(to_batch_dim(args[0], dims[0], 0, size), **params), 0


refs.makes_references.set(True, NewRef)
printing.hidden_params.set(frozenset({"is_tangent"}), NewRef)


@refs.discharge.rule(NewRef)
def _discharge_of_new_ref(primitive: NewRef, x: Array, *, kind: Hashable, **_: Any) -> Ref:
    aval = aval_of(x)
    if not aval.is_extended:
        x = creation.convert_to_type(x, aval.dtype, aval.weak_type)
    return Ref(x, kind)


vma.keeps_unreduced.set(True, NewRef)


class Freeze(Primitive):
    """The last value of a reference, which is not used afterwards."""

    name = "freeze"
    has_effects: ClassVar[bool] = True
    jvp = jvp_of_first
    batch = batch_unary

    def abstract_eval(self, ref: AbstractRef) -> Any:
        return ref.inner_aval

    def shard(self, avals: Avals, outs: Avals) -> PartitionSpec:
        return rules.spec_of(avals[0])

    def effects(self, *avals: Any, **params: Any) -> frozenset[Any]:
        return frozenset({refs.ReadEffect(0)})


@refs.discharge.rule(Freeze)
def _discharge_of_freeze(primitive: Freeze, ref: Cell) -> Any:
    value = ref.read()
    ref.close()
    return value


vma.keeps_unreduced.set(True, Freeze)


class Get(Primitive):
    """The elements of a reference at an index.

    Shapes: ref: Ref{T[s]}, operands of the index -> T[shape of the index].
    """

    name = "get"
    has_effects: ClassVar[bool] = True
    jvp = jvp_of_first

    def abstract_eval(self, ref: AbstractRef, *operands: Any, index: Index) -> AbstractValue:
        return ref.inner_aval.with_shape(index.shape)

    def shard(self, avals: Avals, outs: Avals, *, index: Index) -> PartitionSpec:
        return _selected_spec(self, avals, index)

    def effects(self, *avals: Any, **params: Any) -> frozenset[Any]:
        return frozenset({refs.ReadEffect(0)})

    def batch(self, size: int, args: Values, dims: BatchDims, *, index: Index) -> Batched:
        wide, dim = _batched_index(size, args[0], dims[0], dims[1:], index)
        if wide is not None:
            return self.bind(*args, index=wide), dim
        values = [get(args[0]), *args[1:]]
        outs, out_dims = batching.batch_flat(
            lambda x, *operands: [reference_indexing.read(x, index, operands)], size, values, dims
        )
        return outs[0], out_dims[0]


@printing.notation.rule(Get)
def _notation_of_get(primitive: Get, eqn: Eqn, name: Callable[[Any], str], outs: str) -> str:
    place = place_text(eqn.invars[0], eqn.params["index"], eqn.invars[1:], name)
    return f"{outs} <- {place}"


@refs.discharge.rule(Get)
def _discharge_of_get(primitive: Get, ref: Cell, *operands: Any, index: Index) -> Any:
    return reference_indexing.read(ref.read(), index, operands)


vma.linear_in.set(((0,),), Get)


def _batched_index(
    size: int, ref: object, dim: int | None, operand_dims: Sequence[Any], index: Index
) -> tuple[Index | None, int]:
    """An index of a reference to a batch that selects the same of each example, and where the
    batch is in the result; None in place of the index if there is none.
    """
    arrays_between = index.has_arrays and dim != 0
    if dim is None or arrays_between or any(d is not None for d in operand_dims):
        return None, 0
    if index.has_arrays and not index.position:
        common = len(index.shape) - sum(type(e) is Span for e in index.entries)
        adjacent = type(index.entries[0]) is not Span
        return index.with_dimension(0, size), 0 if adjacent else common
    before = sum(type(e) is Span for e in index.entries[:dim])
    return index.with_dimension(dim, size), before


def _batched_write(
    primitive: Primitive,
    verb: str,
    function: Callable[..., list[Any]],
    size: int,
    args: Values,
    dims: BatchDims,
    index: Index,
) -> tuple[Any, int | None]:
    """A write for a batch: one of a wider index, or of all that `function` makes of the value."""
    (ref, value, *operands), (dim, value_dim, *operand_dims) = args, dims
    if dim is None:
        refuse_batched(ref, verb)
    wide, out_dim = _batched_index(size, ref, dim, operand_dims, index)
    if wide is not None:
        value = to_batch_dim(value, value_dim, out_dim, size)
        return primitive.bind(ref, value, *operands, index=wide), out_dim
    outs, out_dims = batching.batch_flat(function, size, [get(ref), *args[1:]], dims)
    set(ref, ..., to_batch_dim(outs[0], out_dims[0], dim, size))
    return outs[-1], out_dims[-1]


class Swap(Primitive):
    """Replaces the elements of a reference at an index by `value`; the former ones.

    Shapes: ref: Ref{T[s]}, value: T[t], operands of the index -> T[t], the shape of the index.
    """

    name = "swap"
    has_effects: ClassVar[bool] = True

    def abstract_eval(
        self, ref: AbstractRef, value: object, *operands: Any, index: Index
    ) -> AbstractValue:
        check_value(self.name, ref, value, index)
        return ref.inner_aval.with_shape(index.shape)

    def shard(self, avals: Avals, outs: Avals, *, index: Index) -> PartitionSpec:
        return _selected_spec(self, (avals[0], *avals[2:]), index)

    def effects(self, *avals: Any, **params: Any) -> frozenset[Any]:
        return frozenset({refs.WriteEffect(0)})

    def jvp(self, primals: Values, tangents: Tangents, *, index: Index) -> Dual:
        ref_dot, value_dot = tangents[:2]
        if type(ref_dot) is Zero and type(value_dot) is not Zero:
            refuse_differentiated(primals[0], "written to")
        out = self.bind(*primals, index=index)
        if type(ref_dot) is Zero:
            return out, Zero.like(out)
        return out, self.bind(ref_dot, instantiate(value_dot), *primals[2:], index=index)

    def batch(self, size: int, args: Values, dims: BatchDims, *, index: Index) -> Batched:
        def function(x: Array, value: Array, *operands: Any) -> list[Any]:
            new = reference_indexing.write(x, value, index, operands)
            return [new, reference_indexing.read(x, index, operands)]

        return _batched_write(self, "written to", function, size, args, dims, index)


@printing.notation.rule(Swap)
def _notation_of_swap(primitive: Swap, eqn: Eqn, name: Callable[[Any], str], outs: str) -> str:
    place = place_text(eqn.invars[0], eqn.params["index"], eqn.invars[2:], name)
    value = name(eqn.invars[1])
    return f"{place} <- {value}" if outs[0] == "_" else f"{outs}, {place} <- {place}, {value}"


@refs.discharge.rule(Swap)
def _discharge_of_swap(
    primitive: Swap, ref: Cell, value: object, *operands: Any, index: Index
) -> Any:
    before = ref.read()
    _store(ref, reference_indexing.write(before, value, index, operands))
    return reference_indexing.read(before, index, operands)


vma.vary.rule(Swap)(_stored_kind)


class AddUpdate(Primitive):
    """Adds `value` to the elements of a reference at an index.

    Shapes: ref: Ref{T[s]}, value: T[t], operands of the index; t is the shape of the index.
    """

    name = "addupdate"
    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True

    def abstract_eval(
        self, ref: AbstractRef, value: object, *operands: Any, index: Index
    ) -> list[Any]:
        check_value(self.name, ref, value, index)
        return []

    def shard(self, avals: Avals, outs: Avals, *, index: Index) -> list[PartitionSpec]:
        _selected_spec(self, (avals[0], *avals[2:]), index)
        return []

    def effects(self, *avals: Any, **params: Any) -> frozenset[Any]:
        return frozenset({refs.AccumEffect(0)})

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, index: Index) -> Dual:
        ref_dot, value_dot = tangents[:2]
        if type(ref_dot) is Zero and type(value_dot) is not Zero:
            refuse_differentiated(primals[0], "added to")
        self.bind(*primals, index=index)
        if type(value_dot) is not Zero:
            self.bind(ref_dot, value_dot, *primals[2:], index=index)
        return [], []

    def batch(self, size: int, args: Values, dims: BatchDims, *, index: Index) -> Batched:
        def function(x: Array, value: Array, *operands: Any) -> list[Any]:
            return [reference_indexing.accumulate(x, value, index, operands)]

        _batched_write(self, "added to", function, size, args, dims, index)
        return [], []


@printing.notation.rule(AddUpdate)
def _notation_of_add_update(
    primitive: AddUpdate, eqn: Eqn, name: Callable[[Any], str], outs: str
) -> str:
    place = place_text(eqn.invars[0], eqn.params["index"], eqn.invars[2:], name)
    return f"{place} += {name(eqn.invars[1])}"


@refs.discharge.rule(AddUpdate)
def _discharge_of_add_update(
    primitive: AddUpdate, ref: Cell, value: object, *operands: Any, index: Index
) -> list[Any]:
    _store(ref, reference_indexing.accumulate(ref.read(), value, index, operands))
    return []


@vma.vary.rule(AddUpdate)
def _vary_of_add_update(
    primitive: AddUpdate, avals: Avals, outs: Avals, **params: Any
) -> list[Any]:
    _stored_kind(primitive, avals, outs)
    return []


new_ref_p = NewRef()
freeze_p = Freeze()
get_p = Get()
swap_p = Swap()
addupdate_p = AddUpdate()


@vma.agree.rule(Swap, AddUpdate)
def _agree_of_writing(
    primitive: Primitive, trace: Any, args: Values, params: Params
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The operands of a write, the value cast so that it varies as the reference does.

    Raises:
        ValueError: it varies over more, or the place does.
    """
    ref, value, *operands = args
    check_varies_less(primitive.name, ref, value, operands)
    held = vma.of(aval_of(ref)).varying
    value = casts.varied(trace, value, held) if held else value
    reduced = vma.of(aval_of(ref)).reduced
    if reduced and isinstance(value, (int, float, complex, np.generic)):
        over = {"axes": casts.ordered(reduced)}
        (value,) = trace.process(casts.preduced_p, (value,), over)
    return [ref, value, *operands], params


def _store(ref: Cell, value: Any) -> None:
    aval = ref.aval
    if not aval.inner_aval.is_extended:
        value = creation.convert_to_type(value, aval.dtype, aval.weak_type)
    ref.write(value)


def _of_dtype(value: Any, dtype: np.dtype[Any]) -> Any:
    """A Python scalar, or another weakly typed value, in a dtype of its own kind."""
    aval = aval_of(value)
    if not aval.weak_type or aval.dtype == dtype:
        return value
    for kind in (np.integer, np.floating, np.complexfloating):
        if dtypes.issubdtype(aval.dtype, kind) and dtypes.issubdtype(dtype, kind):
            return creation.convert_element_type(value, dtype)
    return value


def new_ref(init_val: Any, *, memory_space: Any = None, kind: Hashable = None) -> Ref:
    """A mutable reference whose first value is `init_val`.

    Read it with `ref[...]` or `ref[i]`, write it with `ref[...] = x`; functions that are traced
    may do so too.

    Derivative: references made inside a differentiated function are differentiated with it.
    Lowers to:  nothing: references are discharged to values.

    Args:
        init_val: an array or a number.
        memory_space: accepted for compatibility; must be None.
        kind: a mark that is part of the reference's type, and means nothing to operations.

    Raises:
        TypeError: init_val is neither an array nor a number, or a reference itself.
        ValueError: the kind is that of a semaphore.
        NotImplementedError: a memory space is given.

    Example:
        >>> count = jax.new_ref(0)
        >>> @jax.jit
        ... def step():
        ...     count[...] += 1
        >>> step(); step()
        >>> count[...]
        Array(2, dtype=int32, weak_type=True)
    """
    if memory_space is not None:
        problem = "memory spaces of references are not supported."
        error(NotImplementedError, "new_ref", problem, got=str(memory_space))
    if kind in refs.SEMAPHORES:
        fix = "run_scoped(f, SemaphoreType.REGULAR) gives f a semaphore"
        error(ValueError, "new_ref", "the kind is that of semaphores.", got=repr(kind), fix=fix)
    aval = aval_of(init_val)
    if type(aval) is AbstractRef:
        fix = "new_ref(ref[...]) copies the value"
        error(TypeError, "new_ref", "a reference cannot hold a reference.", got=str(aval), fix=fix)
    return new_ref_p.bind(init_val, is_tangent=False, memory_space=None, kind=kind)


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A mutable reference to an array of the shape and dtype of `ty`; its contents are undefined.

    Args:
        ty: anything with a shape and a dtype.
        memory_space: accepted for compatibility; must be None.

    Example:
        >>> ref = jax.empty_ref(jax.ShapeDtypeStruct((3,), jnp.int32))
        >>> ref[...] = jnp.array([1, 2, 3])
        >>> ref[0]
        Array(1, dtype=int32)
    """
    return new_ref(zeros(ShapedArray(ty.shape, ty.dtype)), memory_space=memory_space)


def freeze(ref: Any) -> Array:
    """The value of a reference, which cannot be used afterwards.

    Raises:
        ValueError: `ref` is not a reference or a part of one, or was frozen before.

    Example:
        >>> ref = jax.new_ref(1)
        >>> ref[...] = 2
        >>> jax.freeze(ref)
        Array(2, dtype=int32, weak_type=True)
    """
    check_reference("freeze", ref)
    if type(ref) is View:
        fix = "read the part, ref[...], or freeze the whole reference"
        problem = "a part of a reference cannot be frozen."
        error(ValueError, "freeze", problem, got=str(ref), fix=fix)
    return freeze_p.bind(ref)


def free_ref(ref: object) -> None:
    """Frees a reference, whose value is not needed.

    Example:
        >>> ref = jax.new_ref(jnp.zeros(1000))
        >>> jax.free_ref(ref)
        >>> ref[0]
        Traceback (most recent call last):
        ValueError: ref: the reference was frozen, so it cannot be read or written...
    """
    freeze(ref)


def get(ref: Any, idx: Any = None) -> Array:
    """The elements of a reference at an index: `ref[idx]`; all of them without one.

    An index is made of integers, slices, `...`, arrays of integers, and `ds(start, size)`, whose
    start may be traced.  Positions that are traced and out of bounds are clamped.

    Raises:
        ValueError: an index is out of bounds, or there are too many.
        TypeError: one is not an integer, slice or array of integers.

    Example:
        >>> ref = jax.new_ref(jnp.array([10, 20, 30]))
        >>> jax.ref.get(ref), jax.ref.get(ref, (1,))
        (Array([10, 20, 30], dtype=int32), Array(20, dtype=int32))
    """
    ref, idx = _resolved(ref, idx)
    aval = check_reference("ref.get", ref)
    index, operands = reference_indexing.parse(idx, aval.shape, "ref.get")
    reference_indexing.assert_in_bounds("get", aval.shape, index, operands)
    return get_p.bind(ref, *operands, index=index)


def swap(ref: object, idx: object, value: object) -> Array:
    """Replaces the elements at an index by `value`, and returns the former ones.

    Raises:
        ValueError: the value's shape or dtype is not that of the elements.

    Example:
        >>> ref = jax.new_ref(jnp.array([10, 20, 30]))
        >>> jax.ref.swap(ref, (0,), 5), ref[...]
        (Array(10, dtype=int32), Array([ 5, 20, 30], dtype=int32))
    """
    return _written(swap_p, "ref.swap", ref, idx, value)


def set(ref: object, idx: object, value: object) -> None:
    """Replaces the elements at an index by `value`: `ref[idx] = value`.

    Raises:
        ValueError: the value's shape or dtype is not that of the elements.

    Example:
        >>> ref = jax.new_ref(jnp.array([10, 20, 30]))
        >>> jax.ref.set(ref, (slice(1, None),), jnp.array([5, 6]))
        >>> ref[...]
        Array([10,  5,  6], dtype=int32)
    """
    _written(swap_p, "ref.set", ref, idx, value)


def _written(primitive: Primitive, name: str, ref: Any, idx: Any, value: Any) -> Any:
    ref, idx = _resolved(ref, idx)
    aval = check_reference(name, ref)
    index, operands = reference_indexing.parse(idx, aval.shape, name)
    value = _of_dtype(value, aval.dtype)
    check_value(name, aval, aval_of(value), index)
    reference_indexing.assert_in_bounds(primitive.name, aval.shape, index, operands)
    return primitive.bind(ref, value, *operands, index=index)


def addupdate(ref: object, idx: object, x: ArrayLike) -> None:
    """Adds `x` to the elements at an index; to one that occurs several times, each time.

    Raises:
        ValueError: the value's shape or dtype is not that of the elements.

    Example:
        >>> ref = jax.new_ref(jnp.zeros(3))
        >>> jax.ref.addupdate(ref, (jnp.array([0, 2, 2]),), jnp.ones(3))
        >>> ref[...]
        Array([1., 0., 2.], dtype=float32)
    """
    _written(addupdate_p, "ref.addupdate", ref, idx, x)


def with_references(primitive: Primitive, args: Sequence[Any], params: Params) -> Sequence[Any]:
    """Applies an operation that holds jaxprs to traced references, by their values.

    They are read before it and written after it, so that to the current trace the operation is
    one on arrays.
    """
    cells: dict[int, tuple[Any, Cell, Any]] = {}
    given = []
    for x in args:
        if not refs.is_reference(x):
            given.append(x)
            continue
        key = id(x) if type(x) is View else refs.identity(x)
        if key not in cells:
            value = get(x)
            cells[key] = x, Cell(value), value
        given.append(cells[key][1])
    outs = refs.discharge.of(primitive)(*given, **params)
    for ref, cell, before in cells.values():
        after = cell.read()
        if after is not before:
            set(ref, ..., after)
    return outs if primitive.multiple_results else (outs,)


def through_views(trace: Trace, primitive: Primitive, args: Sequence[Any], params: Params) -> Any:
    """Applies an operation that is given parts of references to their values; else None."""
    return with_references(primitive, args, params) if View in map(type, args) else None


def _detour(primitive: Primitive) -> Detour | None:
    # Rules of the user's are given the parts themselves.
    is_function = confinement.stage_functions.of(primitive) is not None
    return None if is_function or refs.discharge.of(primitive) is None else through_views


for _detours in (staging.DETOURS, jvp.DETOURS, batching.DETOURS, partial_eval.DETOURS):
    _detours.add(_detour)
