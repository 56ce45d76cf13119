"""What differs between two traces, or two compilations, of one function.

Input: two records of `core.history`.  Output: one `Change` for each argument or fact that differs,
named by the argument's name and tree path.
"""

from __future__ import annotations

import enum
import os
import reprlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from minijax.core import history, source, tree_errors
from minijax.interpreters import flattening


class Cause(enum.StrEnum):
    """Why a cached program did not serve; each with what to do about it.

    Source:     minijax's own.

    Example:
        >>> jax.explain.Cause.SHAPE.remedy
        'pad the argument to one of a few fixed shapes; a program is made for each'
    """

    remedy: str

    def __new__(cls, label: str, remedy: str) -> Cause:
        """A cause that reads `label`, mended by `remedy`."""
        cause = str.__new__(cls, label)
        cause._value_ = label
        cause.remedy = remedy
        return cause

    SHAPE = "shape", "pad the argument to one of a few fixed shapes; a program is made for each"
    RANK = "number of dimensions", "reshape the argument to one rank before the call"
    DTYPE = "dtype", "convert the argument to one dtype before the call: x.astype(dtype)"
    WEAK_TYPE = (
        "weak type",
        "pass an array of a definite dtype, not a Python scalar: numpy.asarray(x, dtype)",
    )
    SCALAR = (
        "type of a Python scalar",
        "pass Python scalars of one type, or arrays of a definite dtype",
    )
    PLACEMENT = "placement", "place the argument the same way before each call: device_put"
    STATIC_VALUE = (
        "static value",
        "make the argument traced by taking it out of static_argnums, if no shape depends on it",
    )
    STATIC_TYPE = "type of a static value", "convert the static argument to one type"
    STATIC_IDENTITY = (
        "static object without equality",
        "define __eq__ and __hash__ on its class (a frozen dataclass does), or keep one object",
    )
    STATIC_FUNCTION = (
        "static function made anew",
        "make the function that is passed once, outside the loop",
    )
    CONTAINER = "type of a container", "pass the same kind of container in every call"
    DICT_KEYS = "keys of a dict", "pass dicts with the same keys in every call"
    LENGTH = "length of a sequence", "stack the elements into one array, or pad the sequence"
    NONE = "None or a value", "pass None always or never, or jit two functions"
    NODE_DATA = (
        "data of a tree node",
        "keep what changes among the children of the node, not in its static data",
    )
    PRESENCE = "given or left out", "give the argument in every call, or in none"
    COUNT = "number of arguments", "pass one array or a sequence of fixed length in place of *args"
    KEYWORD = "by keyword or by position", "pass the argument the same way in every call"
    STATICS = "which arguments are static", "jit the function once, with one set of options"
    DONATION = "donated arguments", "jit the function once, with one set of options"
    OPTION = "option of jit", "jit the function once, with one set of options"
    CONFIGURATION = (
        "configuration",
        "set the state once at the start, or enter its context manager around every call",
    )
    AXES = "named axes in scope", "call the function under the same axis_name and axis size"
    MESH = (
        "mesh in force",
        "enter set_mesh around every call; meshes of one shape, names and types share programs",
    )
    CONTEXT = "state of another library", "leave the settings of jaxlib alone between calls"
    FUNCTION = (
        "new function object",
        "call jit once, outside the loop: programs are kept for a function object",
    )
    PARTIAL = (
        "new partial object",
        "jit the function itself, once, and pass the bound arguments (static_argnames for those "
        "that are no arrays)",
    )
    METHOD = (
        "method of another object",
        "jit a function that takes the object as an argument: make its class a tree node, or "
        "hashable and static",
    )
    CALLABLE = "new callable object", "make the object and its jitted form once"
    CAPTURED = "captured value", "pass the value as an argument instead of closing over it"
    CLOSED_OVER_TRACER = (
        "values of an enclosing trace",
        "pass the traced values as arguments instead of closing over them",
    )
    CLEARED = "caches were cleared", "do not call clear_cache or clear_caches between calls"
    DEVICE = "device of committed arguments", "device_put all arguments to one device"
    SEVERAL_DEVICES = (
        "devices of the program",
        "place all arguments on one mesh, and call under one set_mesh",
    )
    ORDER_OF_DEVICES = (
        "order of the devices of the program",
        "make meshes of the same devices in the same order, or one mesh",
    )
    SHARDING = (
        "sharding of an argument",
        "device_put the argument with one sharding before each call, or give in_shardings",
    )
    PARTITIONER = "partitioner", "set use_shardy_partitioner once, at the start"
    COMMITTED = (
        "committed to a device or not",
        "device_put the arguments in every call, or in none",
    )
    DEFAULT_DEVICE = "default device", "set default_device once, or place arguments by device_put"


class Change(NamedTuple):
    """One thing that differs from the nearest earlier trace or compilation.

    Source:     minijax's own.

    Attributes:
        argument: the argument with its tree path, such as `params['w']`; or the name of a state
            or option; empty where the change concerns the function as a whole.
        cause: what kind of thing changed; compares equal to its text.
        before: how it was.
        after: how it is now.
        at: the user's line of the call.

    Example:
        >>> f = jax.jit(lambda x: x + 1)
        >>> _ = f(jnp.ones(3)), f(jnp.ones(4))
        >>> for change in jax.explain.retraces(f):
        ...     print(change.argument, change.cause, change.before, change.after)
        x shape f32[3] f32[4]
    """

    argument: str
    cause: Cause
    before: str
    after: str
    at: str

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return self.cause.remedy

    def __str__(self) -> str:
        subject = f"{self.argument}: " if self.argument else ""
        values = " -> ".join(text for text in (self.before, self.after) if text)
        return f"{subject}{self.cause}, {values}" if values else f"{subject}{self.cause}"


class _Value(NamedTuple):
    """One argument of a call, or a part of one: its tree, and what its leaves are."""

    tree: Any
    avals: Sequence[Any]
    kinds: Sequence[type]

    def children(self) -> list[_Value]:
        found, start = [], 0
        for tree in self.tree.children():
            stop = start + tree.num_leaves
            found.append(_Value(tree, self.avals[start:stop], self.kinds[start:stop]))
            start = stop
        return found


class _Argument(NamedTuple):
    """An argument of a call by the name of its parameter; the value is a memento if static."""

    value: Any
    by_keyword: bool


def trace_changes(new: history.TraceRecord, old: history.TraceRecord) -> list[Change]:
    """Why the program of the trace `old` did not serve where `new` was made."""
    found = [
        Change(argument, cause, before, after, new.at)
        for changes in (_function_changes, _argument_changes, _setting_changes, _context_changes)
        for argument, cause, before, after in changes(new, old)
    ]
    if not found:
        # The keys agree, so the program was there and is gone, or could not be kept.
        cause = Cause.CLOSED_OVER_TRACER if old.facts["lifted"] else Cause.CLEARED
        found = [Change("", cause, "", "", new.at)]
    return found


def compilation_changes(
    record: history.TraceRecord, new: history.Compilation, old: history.Compilation
) -> list[Change]:
    """Why the executable `old` of a traced program did not serve where `new` was made."""
    names = _leaf_names(record)
    if isinstance(new.device, tuple) or isinstance(old.device, tuple):
        found = _changes_over_devices(names, new, old)
        if found:
            return found
    if new.device == old.device:
        by = _names_at(names, new.demanded_by or old.demanded_by)
        cause, before, after = Cause.COMMITTED, *map(_commitment, (old.committed, new.committed))
    elif new.committed:
        by = _names_at(names, new.demanded_by)
        cause, before, after = Cause.DEVICE, str(old.device), str(new.device)
    else:
        by = "config.default_device"
        cause, before, after = Cause.DEFAULT_DEVICE, str(old.device), str(new.device)
    return [Change(by, cause, before, after, new.at)]


def _changes_over_devices(
    names: Sequence[str], new: history.Compilation, old: history.Compilation
) -> list[Change]:
    """What differs between compilations one of which is for several devices."""
    if new.device != old.device:
        before, after = _devices(old.device), _devices(new.device)
        cause = Cause.SEVERAL_DEVICES
        if set(before) == set(after):
            cause = Cause.ORDER_OF_DEVICES
        by = _names_at(names, new.demanded_by)
        return [Change(by, cause, _ids_text(before), _ids_text(after), new.at)]
    found = [
        Change(_names_at(names, [i]), Cause.SHARDING, str(was), str(now), new.at)
        for i, (was, now) in enumerate(zip(old.placed, new.placed, strict=False))
        if was != now
    ]
    if new.partitioner != old.partitioner:
        was, now = (("GSPMD", "Shardy")[x.partitioner] for x in (old, new))
        state = "config.use_shardy_partitioner"
        found.append(Change(state, Cause.PARTITIONER, was, now, new.at))
    return found


def _devices(device: Any) -> tuple[Any, ...]:
    return device if isinstance(device, tuple) else (device,)


def _ids_text(devices: Sequence[Any]) -> str:
    return str([device.id for device in devices])


def _commitment(committed: bool) -> str:
    return "committed" if committed else "not committed"


def _leaf_names(record: history.TraceRecord) -> list[str]:
    # Values of enclosing traces come first among the operands of a program.
    names = [""] * record.facts.get("lifted", 0)
    for name, argument in arguments_of(record).items():
        if not isinstance(argument.value, history.Memento):
            tree = argument.value.tree
            names += [name + tree_errors.keystr(path) for path in tree_errors.leaf_paths(tree)]
    return names


def _names_at(names: Sequence[str], positions: Sequence[int]) -> str:
    return ", ".join(names[i] for i in positions if i < len(names))


_Facts = tuple[str, Cause, str, str]

_CAUSES_OF_FORMS = {
    "function": Cause.FUNCTION,
    "partial": Cause.PARTIAL,
    "method": Cause.METHOD,
    "callable object": Cause.CALLABLE,
}


def _function_changes(new: history.TraceRecord, old: history.TraceRecord) -> Iterator[_Facts]:
    function, former = new.function, old.function
    if function.is_same(former):
        return
    yield "", _CAUSES_OF_FORMS[function.form], "", f"jit at {function.made_at}"
    before = dict(former.captured)
    for name, value in function.captured:
        if name in before and before[name] != value and name != "self":
            yield name, Cause.CAPTURED, text_of(before[name]), text_of(value)


def _argument_changes(new: history.TraceRecord, old: history.TraceRecord) -> Iterator[_Facts]:
    after, before = arguments_of(new), arguments_of(old)
    for name in before | after:
        if name not in before or name not in after:
            cause = Cause.COUNT if _is_variadic(name, new) else Cause.PRESENCE
            yield name, cause, _presence(before, name), _presence(after, name)
            continue
        was, now = before[name], after[name]
        if was.by_keyword != now.by_keyword:
            yield name, Cause.KEYWORD, _manner(was), _manner(now)
        static = [isinstance(x.value, history.Memento) for x in (was, now)]
        if all(static):
            yield from _static_changes(name, was.value, now.value)
        elif not any(static):
            yield from _tree_changes(name, was.value, now.value)


def arguments_of(record: history.TraceRecord) -> dict[str, _Argument]:
    """The arguments of a traced call by name: trees of types, or what is kept of a static value."""
    names = record.function.parameters or ()
    args, kwargs = _Value(record.in_tree, record.avals, record.kinds).children()
    found = {}
    for i, value in enumerate(args.children()):
        position = i if record.positions is None else record.positions[i]
        found[flattening.argument_name(names, position)] = _Argument(value, by_keyword=False)
    for name, value in zip(kwargs.tree.node_data()[1], kwargs.children(), strict=True):
        found[name] = _Argument(value, by_keyword=True)
    for where, memento in record.statics:
        by_keyword = isinstance(where, str)
        found[where if by_keyword else flattening.argument_name(names, where)] = _Argument(
            memento, by_keyword
        )
    return found


def _is_variadic(name: str, record: history.TraceRecord) -> bool:
    return name.endswith("]") and name not in (record.function.parameters or ())


def _presence(arguments: dict[str, _Argument], name: str) -> str:
    return "given" if name in arguments else "left out"


def _manner(argument: _Argument) -> str:
    return "by keyword" if argument.by_keyword else "by position"


def _static_changes(name: str, was: history.Memento, now: history.Memento) -> Iterator[_Facts]:
    if was == now:
        return
    if was.kind is not now.kind:
        cause = Cause.STATIC_TYPE
    elif callable(now.value) and not isinstance(now.value, type):
        cause = Cause.STATIC_FUNCTION
    elif all("__eq__" not in vars(base) for base in now.kind.__mro__[:-1]):
        cause = Cause.STATIC_IDENTITY
    else:
        cause = Cause.STATIC_VALUE
    yield name, cause, text_of(was), text_of(now)


def text_of(memento: history.Memento) -> str:
    """A value of the user in a few words, as far as it is still known."""
    kind = memento.kind.__name__
    value = memento.value
    if value is None and memento.kind is not type(None):
        return f"a former {kind}"
    code = getattr(value, "__code__", None)
    if code is not None:
        place = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
        return (
            code.co_name if source.is_internal(code.co_filename) else f"{code.co_name} at {place}"
        )
    aval = getattr(value, "aval", None)
    if aval is not None:
        return f"{kind} of {aval.str_short()}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{kind} of {value.dtype}{list(value.shape)}"
    return reprlib.repr(value)


def _tree_changes(path: str, was: _Value, now: _Value) -> Iterator[_Facts]:
    kinds = [_node_kind(was.tree), _node_kind(now.tree)]
    if kinds[0] is None and kinds[1] is None:
        yield from _leaf_changes(path, was, now)
    elif kinds[0] is not kinds[1]:
        cause = Cause.NONE if type(None) in kinds else Cause.CONTAINER
        yield path, cause, _node_text(was), _node_text(now)
    elif kinds[0] is dict:
        yield from _dict_changes(path, was, now)
    elif was.tree.node_data() != now.tree.node_data():
        before, after = (reprlib.repr(x.tree.node_data()[1]) for x in (was, now))
        yield path, Cause.NODE_DATA, before, after
    else:
        children = was.children(), now.children()
        if len(children[0]) != len(children[1]):
            yield path, Cause.LENGTH, str(len(children[0])), str(len(children[1]))
        for key, *pair in zip(tree_errors.child_keys(was.tree), *children, strict=False):
            yield from _tree_changes(path + str(key), *pair)


def _node_kind(tree: Any) -> type | None:
    data = tree.node_data()
    return None if data is None else data[0]


def _node_text(value: _Value) -> str:
    kind = _node_kind(value.tree)
    if kind is None:
        return leaf_text(value)
    return "None" if kind is type(None) else kind.__name__


def _dict_changes(path: str, was: _Value, now: _Value) -> Iterator[_Facts]:
    before, after = (
        dict(zip(x.tree.node_data()[1], x.children(), strict=True)) for x in (was, now)
    )
    if before.keys() != after.keys():
        gone = [f"without {key!r}" for key in before if key not in after]
        added = [f"with {key!r}" for key in after if key not in before]
        keys = reprlib.repr(list(before))
        yield path, Cause.DICT_KEYS, keys, ", ".join(gone + added)
    for key in before:
        if key in after:
            yield from _tree_changes(f"{path}[{key!r}]", before[key], after[key])


_SCALARS = (bool, int, float, complex)


def _leaf_changes(path: str, was: _Value, now: _Value) -> Iterator[_Facts]:
    (before,), (after,) = was.avals, now.avals
    if before is after or (was.kinds == now.kinds and now.kinds[0] in _SCALARS):
        # The dtype of a Python scalar follows the configuration, which is named instead.
        return
    causes = []
    if before.shape != after.shape:
        causes.append(Cause.SHAPE if before.ndim == after.ndim else Cause.RANK)
    if before.dtype != after.dtype:
        scalars = all(kind in _SCALARS for kind in (*was.kinds, *now.kinds))
        causes.append(Cause.SCALAR if scalars else Cause.DTYPE)
    elif before.weak_type != after.weak_type:
        causes.append(Cause.WEAK_TYPE)
    for cause in causes or [Cause.PLACEMENT]:
        yield path, cause, leaf_text(was), leaf_text(now)


def leaf_text(value: _Value) -> str:
    """The type of a leaf, as a key of the cache has it."""
    (aval,), (kind,) = value.avals, value.kinds
    if kind in _SCALARS:
        return f"Python {kind.__name__}"
    text = str(aval.str_short())
    return f"{text}, weakly typed" if aval.weak_type else text


_OPTION_CAUSES = {
    "static_argnums": Cause.STATICS,
    "static_argnames": Cause.STATICS,
    "donate_argnums": Cause.DONATION,
    "donate_argnames": Cause.DONATION,
}


def _setting_changes(new: history.TraceRecord, old: history.TraceRecord) -> Iterator[_Facts]:
    before = old.settings._asdict()
    for name, value in new.settings._asdict().items():
        if before[name] != value:
            yield name, _OPTION_CAUSES.get(name, Cause.OPTION), repr(before[name]), repr(value)


def _context_changes(new: history.TraceRecord, old: history.TraceRecord) -> Iterator[_Facts]:
    changed = False
    for name, value in new.states.items():
        if old.states[name] != value:
            changed = True
            yield f"config.{name}", Cause.CONFIGURATION, repr(old.states[name]), repr(value)
    if new.axes != old.axes:
        changed = True
        yield "", Cause.AXES, _axes_text(old.axes), _axes_text(new.axes)
    if new.mesh is not old.mesh:
        changed = True
        yield "set_mesh", Cause.MESH, _mesh_text(old.mesh), _mesh_text(new.mesh)
    if new.context != old.context and not changed:
        yield "", Cause.CONTEXT, "", ""


def _mesh_text(mesh: Any) -> str:
    return "none" if mesh.empty else str(mesh)


def _axes_text(axes: Sequence[Any]) -> str:
    shown = [f"{a.name}={a.size}" + ("" if a.kind == "vmap" else f" of {a.kind}") for a in axes]
    return ", ".join(shown) or "none"


def nearest(
    new: history.TraceRecord, earlier: Sequence[history.TraceRecord]
) -> tuple[history.TraceRecord, list[Change]]:
    """Of the earlier traces the one with the fewest differences, the latest of several."""
    compared = [(old, trace_changes(new, old)) for old in reversed(earlier)]
    return min(compared, key=lambda pair: len(pair[1]))
