"""Trees in files: the structures of arguments and results as records, and back.

Input: a tree definition.  Output: a record of `files.SCHEMA`, and the other way round.  Tuples,
lists, dictionaries and None are known to every reader; of other classes users say by which name
they stand in files, and how what `flatten` keeps aside becomes bytes.
"""

from __future__ import annotations

import collections
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast

from minijax.core import source, tree
from minijax.core.errors import error
from minijax.core.tree_registry import registry
from minijax.export.tables import DamagedError, Record

if TYPE_CHECKING:
    from minijax.core.native import PyTreeDef

T = TypeVar("T")
_LEAF, _NONE, _TUPLE, _LIST, _DICT, _CUSTOM = range(6)
_PLAIN: dict[Any, int] = {type(None): _NONE, tuple: _TUPLE, list: _LIST, dict: _DICT}


class _Form(NamedTuple):
    """How nodes of a class stand in files."""

    nodetype: type
    name: str
    to_bytes: Callable[[Any], bytes]
    from_bytes: Callable[[bytes], Any]
    build: Callable[[Any, Sequence[Any]], Any] | None


_by_type: dict[type, _Form] = {}
_by_name: dict[str, _Form] = {}


@source.boundary
def register_pytree_node_serialization(
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> type[T]:
    """Says how nodes of a class stand in files of exported programs.

    Args:
        nodetype: a class that is a node of trees, see `tree_util.register_pytree_node`.
        serialized_name: its name in files.
        serialize_auxdata: makes bytes of what the class's `flatten` keeps beside the children.
        deserialize_auxdata: makes that of the bytes.
        from_children: builds a node of that and of children; by default as trees are built.

    Returns:
        `nodetype`, so that this is a decorator too.

    Raises:
        ValueError: the class or the name has a form already, or the class is no node of trees.

    Example:
        >>> class Point:
        ...     def __init__(self, x, y):
        ...         self.x, self.y = x, y
        >>> jax.tree_util.register_pytree_node(
        ...     Point, lambda p: ((p.x, p.y), None), lambda _, xy: Point(*xy)
        ... )
        >>> _ = jax.export.register_pytree_node_serialization(
        ...     Point,
        ...     serialized_name="geometry.Point",
        ...     serialize_auxdata=lambda _: b"",
        ...     deserialize_auxdata=lambda _: None,
        ... )
        >>> double = jax.jit(lambda p: Point(2 * p.x, 2 * p.y))
        >>> file = jax.export.export(double)(Point(1, 2)).serialize()
        >>> jax.export.deserialize(file).call(Point(3, 4)).y
        Array(8, dtype=int32, weak_type=True)
    """
    name = "export.register_pytree_node_serialization"
    if nodetype in _by_type:
        problem = f"the class has the name {_by_type[nodetype].name!r} in files already."
        error(ValueError, name, problem, got=str(nodetype), expected="one registration")
    if serialized_name in _by_name:
        problem = f"{serialized_name!r} stands for {_by_name[serialized_name].nodetype} already."
        error(ValueError, name, problem, got=str(nodetype), fix="choose another name")
    if from_children is None and not tree.is_tree_node(nodetype):
        problem = "the class is no node of trees."
        fix = "register it before: tree_util.register_pytree_node(...), or give from_children="
        error(ValueError, name, problem, got=str(nodetype), fix=fix)
    form = _Form(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    _by_type[nodetype] = _by_name[serialized_name] = form
    return nodetype


@source.boundary
def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """Says by which name a named tuple stands in files of exported programs.

    Args:
        nodetype: the class; where a file is read, it must have the fields it had.
        serialized_name: its name in files.

    Returns:
        `nodetype`, so that this is a decorator too.

    Raises:
        ValueError: the class is no named tuple, or it or the name has a form already.

    Example:
        >>> class Pair(typing.NamedTuple):
        ...     left: jax.Array
        ...     right: jax.Array
        >>> _ = jax.export.register_namedtuple_serialization(Pair, serialized_name="a.Pair")
        >>> exported = jax.export.export(jax.jit(lambda x: Pair(x, -x)))(1.0)
        >>> jax.export.deserialize(exported.serialize()).call(3.0).right
        Array(-3., dtype=float32, weak_type=True)
    """
    fields = getattr(nodetype, "_fields", None)
    if not (isinstance(nodetype, type) and issubclass(nodetype, tuple) and fields is not None):
        problem = "the class is no named tuple."
        fix = "export.register_pytree_node_serialization for other classes"
        name = "export.register_namedtuple_serialization"
        error(ValueError, name, problem, got=str(nodetype), fix=fix)

    def build(keys: Sequence[str], children: Sequence[Any]) -> T:
        return nodetype(**dict(zip(keys, children, strict=True)))

    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: json.dumps(fields).encode(),
        deserialize_auxdata=json.loads,
        from_children=build,
    )


def _bytes_of_keys(keys: Any) -> bytes:
    if not all(isinstance(key, str) for key in keys):
        _refuse_keys(keys)
    return json.dumps(list(keys)).encode()


register_pytree_node_serialization(
    collections.OrderedDict,
    serialized_name="collections.OrderedDict",
    serialize_auxdata=_bytes_of_keys,
    deserialize_auxdata=lambda raw: tuple(json.loads(raw)),
)


def _refuse_keys(keys: Any) -> NoReturn:
    problem = "dictionaries of exported programs have keys that are strings."
    error(TypeError, "Exported.serialize", problem, got=", ".join(map(repr, keys)))


def record_of(treedef: PyTreeDef) -> Record:
    """A structure as a record.

    Raises:
        TypeError: a dictionary has keys that are no strings.
        ValueError: a class has no form in files, or its form is not bytes.
    """
    node = treedef.node_data()
    if node is None:
        return {"kind": _LEAF}
    nodetype, data = cast(Any, node)
    record: Record = {}
    children = treedef.children()
    if children:
        record["children"] = [record_of(child) for child in children]
    if nodetype in _PLAIN:
        if nodetype is dict:
            if not all(isinstance(key, str) for key in data):
                _refuse_keys(data)
            record["names"] = list(data)
        return {"kind": _PLAIN[nodetype], **record}
    form = _by_type.get(nodetype)
    if form is None:
        problem = f"nothing says how {nodetype} stands in files."
        fix = "export.register_pytree_node_serialization(...), or register_namedtuple_serialization"
        error(ValueError, "Exported.serialize", problem, fix=fix)
    aside = form.to_bytes(data)
    if not isinstance(aside, bytes | bytearray):
        problem = f"serialize_auxdata of {nodetype} must return bytes."
        error(ValueError, "Exported.serialize", problem, got=type(aside).__name__)
    return {"kind": _CUSTOM, **record, "custom_name": form.name, "custom_data": bytes(aside)}


def structure_of(record: Record, leaves: Sequence[Any]) -> PyTreeDef:
    """The structure that a record tells of.

    Args:
        record: what `record_of` gives.
        leaves: what stands at its leaves, where classes look at them.

    Raises:
        DamagedError: it does not fit itself, or the number of leaves.
        ValueError: nothing says what a name of a class means.
    """
    rest = iter(leaves)
    built = _node(record, rest)
    if next(rest, None) is not None:
        raise DamagedError("a tree has fewer leaves than there are values")
    return built


def _node(record: Record, leaves: Any) -> PyTreeDef:
    kind = record["kind"]
    if kind == _LEAF:
        if next(leaves, None) is None:
            raise DamagedError("a tree has more leaves than there are values")
        return tree.structure(0)
    children = [_node(child, leaves) for child in cast(Any, record["children"])]
    if kind == _CUSTOM:
        return _custom_node(record, children)
    nodetype = next((one for one, number in _PLAIN.items() if number == kind), None)
    if nodetype is None:
        raise DamagedError(f"there is no kind of tree of number {kind!r}")
    keys = cast(Any, record["names"])
    if nodetype is dict and (len(keys) != len(children) or sorted(set(keys)) != keys):
        raise DamagedError("a dictionary has other keys than values")
    if nodetype is type(None):
        return tree.structure(None)
    return _made(nodetype, keys if nodetype is dict else None, children)


def _made(nodetype: type, data: Any, children: Sequence[PyTreeDef]) -> PyTreeDef:
    make: Any = type(tree.structure(0)).from_node_data_and_children
    made: PyTreeDef = make(registry, (nodetype, data), children)
    return made


def _custom_node(record: Record, children: Sequence[PyTreeDef]) -> PyTreeDef:
    name = cast(Any, record["custom_name"])
    form = _by_name.get(name)
    if form is None:
        problem = f"nothing says which class {name!r} is."
        fix = "export.register_pytree_node_serialization, or register_namedtuple_serialization, "
        error(ValueError, "export.deserialize", problem, fix=fix + "as where the file was written")
    data = form.from_bytes(cast(bytes, record["custom_data"]))
    if form.build is None:
        return _made(form.nodetype, data, children)
    example = form.build(data, [tree.unflatten(c, [0] * c.num_leaves) for c in children])
    return tree.structure(example)
