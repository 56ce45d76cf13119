"""Which types are nodes of trees, and how users add their own.

Input: a class and the functions that take it apart and put it together.  Output: an entry in
both registries.  What is done with trees is in `core/tree.py`.
"""

from __future__ import annotations

import collections
import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from jaxlib import _jax

from minijax.core import deferral, source
from minijax.core.errors import error
from minijax.core.native import DictKey

if TYPE_CHECKING:
    import dataclasses
else:
    dataclasses = deferral.module("dataclasses")

KeyEntry = TypeVar("KeyEntry", bound=Hashable)
KeyPath = tuple[KeyEntry, ...]

Class = TypeVar("Class", bound=type)
KeyLeafPair = tuple[Any, Any]


class _Registry(_jax.pytree.PyTreeRegistry):  # type: ignore[misc]
    """jaxlib's registry under a module-level name, so that tree definitions can be pickled."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __reduce__(self) -> str:
        return self._name


class _UserRegistry(_Registry):
    """The registry of user trees; whatever enters it enters the dispatch registry as well."""

    def register_node(
        self,
        nodetype: type,
        to_iterable: Callable[[Any], tuple[Iterable[Any], Hashable]],
        from_iterable: Callable[[Any, Any], Any],
        to_iterable_with_keys: Callable[[Any], tuple[Any, Hashable]] | None = None,
    ) -> None:
        arguments = (nodetype, to_iterable, from_iterable, to_iterable_with_keys)
        # First the larger registry: if it refuses, nothing was registered anywhere.
        dispatch_registry.register_node(*arguments)
        super().register_node(*arguments)

    def register_dataclass_node(
        self, nodetype: type, data_fields: Sequence[str], meta_fields: Sequence[str]
    ) -> None:
        arguments = (nodetype, list(data_fields), list(meta_fields))
        dispatch_registry.register_dataclass_node(*arguments)
        super().register_dataclass_node(*arguments)
        _data_fields[nodetype] = tuple(data_fields)

    def flatten_one_level_with_keys(
        self, tree: object
    ) -> tuple[tuple[KeyLeafPair, ...], Hashable] | None:
        one_level = self.flatten_one_level(tree)
        if one_level is None:
            return None
        # jaxlib's method gives all children of a named tuple the key of the first.
        pairs, _ = self.flatten_with_path(tree, lambda path, _: len(path) == 1)
        return tuple((path[0], child) for path, child in pairs), one_level[1]


dispatch_registry = _Registry("dispatch_registry")
"""User trees, and arrays as nodes around their buffers: what jaxlib's call path flattens."""

registry = _UserRegistry("registry")
"""User trees; an array is a leaf.  Private, because jaxlib's default registry is JAX's."""

_data_fields: dict[type, tuple[str, ...]] = {}


def data_fields(nodetype: type) -> tuple[str, ...] | None:
    """The fields of a registered dataclass that are children; None for any other type."""
    return _data_fields.get(nodetype)


def register_dispatch_only_dataclass(
    cls: type, data_fields: Sequence[str], meta_fields: Sequence[str] = ()
) -> None:
    """Lets jaxlib's call path see through `cls`, which stays a leaf of user trees."""
    dispatch_registry.register_dataclass_node(cls, list(data_fields), list(meta_fields))


def _check_class(name: str, nodetype: object) -> None:
    if not isinstance(nodetype, type):
        got = f"{nodetype!r} of type {type(nodetype).__name__}"
        expected = "the class whose instances are to be nodes of trees"
        error(TypeError, name, "nodetype is not a class.", got=got, expected=expected)


def _refuse_duplicate(name: str, nodetype: type) -> NoReturn:
    problem = f"duplicate registration: {nodetype.__qualname__} is a pytree node already."
    expected = "a class that was never registered"
    fix = "register it once, next to its definition; use a subclass for another behaviour"
    got = f"{nodetype!r}"
    error(ValueError, name, problem, got=got, expected=expected, fix=fix, cause=None)


def _check_methods(name: str, cls: type, methods: Iterable[str]) -> None:
    missing = [method for method in methods if not hasattr(cls, method)]
    if missing:
        error(
            AttributeError,
            name,
            f"{cls.__qualname__} lacks the method{'s' * (len(missing) > 1)} {', '.join(missing)}.",
            expected="a method that returns (children, aux_data), and the class method "
            "tree_unflatten(aux_data, children)",
            fix="define it, or hand functions to register_pytree_node",
        )


def _register(
    name: str,
    nodetype: type,
    flatten: Callable[[Any], tuple[Any, Any]],
    unflatten: Callable[[Any, Any], Any],
    flatten_with_keys: Callable[[Any], tuple[Any, Any]] | None = None,
) -> None:
    _check_class(name, nodetype)
    try:
        registry.register_node(nodetype, flatten, unflatten, flatten_with_keys)
    except ValueError:
        _refuse_duplicate(name, nodetype)


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Any, Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Any, Any]] | None = None,
) -> None:
    """Makes instances of `nodetype` nodes of trees.

    `flatten_func(node)` returns `(children, aux_data)` with hashable, comparable `aux_data`.
    `unflatten_func(aux_data, children)` is its inverse, and has to accept children of any type.
    `flatten_with_keys_func(node)` returns `((key, child) pairs, aux_data)`.

    Raises:
        TypeError: nodetype is not a class.
        ValueError: it is a node already.

    Example:
        >>> class Interval:
        ...     def __init__(self, low, high):
        ...         self.low, self.high = low, high
        >>> jax.tree_util.register_pytree_node(
        ...     Interval, lambda i: ((i.low, i.high), None), lambda _, ends: Interval(*ends)
        ... )
        >>> jax.jit(lambda i: i.high - i.low)(Interval(3, 10))
        Array(7, dtype=int32, weak_type=True)
    """
    _register(
        "register_pytree_node", nodetype, flatten_func, unflatten_func, flatten_with_keys_func
    )


def register_pytree_node_class(cls: Class) -> Class:
    """Decorator for classes with `tree_flatten` and the class method `tree_unflatten`.

    Raises:
        AttributeError: one of the two methods is missing.
        ValueError: the class is a node already.

    Example:
        >>> @jax.tree_util.register_pytree_node_class
        ... class Scaled:
        ...     def __init__(self, x, unit):
        ...         self.x, self.unit = x, unit
        ...     def tree_flatten(self):
        ...         return (self.x,), self.unit
        ...     @classmethod
        ...     def tree_unflatten(cls, unit, children):
        ...         return cls(*children, unit)
        >>> jax.tree.leaves(Scaled(5, "m"))
        [5]
    """
    name = "register_pytree_node_class"
    _check_methods(name, cls, ("tree_flatten", "tree_unflatten"))
    _register(name, cls, operator.methodcaller("tree_flatten"), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[KeyLeafPair], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Makes instances of `nodetype` nodes whose children have names in key paths.

    `flatten_func` is the quicker form without keys; it is derived where it is absent.

    Raises:
        TypeError: nodetype is not a class.
        ValueError: it is a node already.

    Example:
        >>> class Pair:
        ...     def __init__(self, x, y):
        ...         self.x, self.y = x, y
        >>> key = jax.tree_util.GetAttrKey
        >>> jax.tree_util.register_pytree_with_keys(
        ...     Pair,
        ...     lambda p: (((key("x"), p.x), (key("y"), p.y)), None),
        ...     lambda _, children: Pair(*children),
        ... )
        >>> [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path([Pair(1, 2)])]
        ['[0].x', '[0].y']
    """
    name = "register_pytree_with_keys"
    flatten = flatten_func or _without_keys(flatten_with_keys)
    _register(name, nodetype, flatten, unflatten_func, _with_pairs(flatten_with_keys))


def _without_keys(
    flatten_with_keys: Callable[[Any], tuple[Iterable[KeyLeafPair], Any]],
) -> Callable[[Any], tuple[list[Any], Any]]:
    def flatten(node: object) -> tuple[list[Any], Any]:
        pairs, aux_data = flatten_with_keys(node)
        return [child for _, child in pairs], aux_data

    return flatten


def _with_pairs(
    flatten_with_keys: Callable[[Any], tuple[Iterable[KeyLeafPair], Any]],
) -> Callable[[Any], tuple[list[KeyLeafPair], Any]]:
    # C++ insists on tuples; any pair of a key and a child is welcome here.
    def flatten(node: object) -> tuple[list[KeyLeafPair], Any]:
        pairs, aux_data = flatten_with_keys(node)
        return [(key, child) for key, child in pairs], aux_data

    return flatten


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Decorator for classes with `tree_flatten_with_keys` and the class method `tree_unflatten`.

    A method `tree_flatten` serves where no keys are wanted; it may be absent.

    Raises:
        AttributeError: one of the two methods is missing.
        ValueError: the class is a node already.

    Example:
        >>> @jax.tree_util.register_pytree_with_keys_class
        ... class Box:
        ...     def __init__(self, inside):
        ...         self.inside = inside
        ...     def tree_flatten_with_keys(self):
        ...         return ((jax.tree_util.GetAttrKey("inside"), self.inside),), None
        ...     @classmethod
        ...     def tree_unflatten(cls, _, children):
        ...         return cls(*children)
        >>> jax.tree_util.keystr(jax.tree.leaves_with_path(Box(1))[0][0])
        '.inside'
    """
    name = "register_pytree_with_keys_class"
    _check_methods(name, cls, ("tree_flatten_with_keys", "tree_unflatten"))
    with_keys = operator.methodcaller("tree_flatten_with_keys")
    has_flatten = hasattr(cls, "tree_flatten")
    flatten = operator.methodcaller("tree_flatten") if has_flatten else _without_keys(with_keys)
    _register(name, cls, flatten, cls.tree_unflatten, _with_pairs(with_keys))  # type: ignore[attr-defined]
    return cls


def register_static(cls: Class) -> Class:
    """Decorator: instances of `cls` are nodes without leaves, all structure; they must be hashable.

    Raises:
        ValueError: the class is a node already.

    Example:
        >>> @jax.tree_util.register_static
        ... class Mode(str): ...
        >>> jax.tree.leaves((Mode("train"), 1))
        [1]
    """
    _register("register_static", cls, lambda node: ((), node), lambda node, _: node)
    return cls


def register_dataclass(
    nodetype: Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Class:
    """Makes instances of a dataclass nodes: `data_fields` are children, `meta_fields` structure.

    Without field lists, fields marked `static` (see `tree.static`) are structure, and all others
    children.  Another class than a dataclass needs both lists, and an `__init__` that takes the
    fields by keyword.  Meta fields must be comparable and hashable: arrays are data.

    Source:     mirrors jax.tree_util.register_dataclass (0.10); superset: `drop_fields` also
                serves where fields are inferred.

    Raises:
        TypeError: nodetype is not a class, or only one of the lists is given, or fields have to
            be inferred and the class is not a dataclass.
        ValueError: the lists overlap, or miss a field of `__init__`, or name another one; or the
            class is a node already.

    Example:
        >>> import dataclasses
        >>> @jax.tree_util.register_dataclass
        ... @dataclasses.dataclass
        ... class Layer:
        ...     weights: object
        ...     name: str = jax.tree.static(default="")
        >>> jax.tree.map(lambda w: 10 * w, Layer(1, "first"))
        Layer(weights=10, name='first')
    """
    name = "register_dataclass"
    _check_class(name, nodetype)
    if data_fields is None and meta_fields is None:
        data_fields, meta_fields = _inferred_fields(nodetype, drop_fields)
    if data_fields is None or meta_fields is None:
        problem = "data_fields and meta_fields belong together."
        got = {"data_fields": data_fields, "meta_fields": meta_fields}
        fix = "give an empty list for the kind of field that the class lacks"
        error(TypeError, name, problem, got=got, expected="both, or neither", fix=fix)
    _check_fields(nodetype, data_fields, meta_fields, drop_fields)
    try:
        registry.register_dataclass_node(nodetype, data_fields, meta_fields)
    except ValueError:
        _refuse_duplicate(name, nodetype)
    return nodetype


def _inferred_fields(nodetype: type, drop_fields: Sequence[str]) -> tuple[list[str], list[str]]:
    if not dataclasses.is_dataclass(nodetype):
        problem = "the fields of a class that is no dataclass cannot be inferred."
        got = f"{nodetype!r}"
        expected = "a dataclass, or data_fields and meta_fields"
        fix = "apply @dataclasses.dataclass first (write it below @register_dataclass)"
        error(TypeError, "register_dataclass", problem, got=got, expected=expected, fix=fix)
    data: list[str] = []
    meta: list[str] = []
    for field in dataclasses.fields(nodetype):
        if field.name not in drop_fields:
            (meta if field.metadata.get("static", False) else data).append(field.name)
    return data, meta


def _check_fields(
    nodetype: type, data: Sequence[str], meta: Sequence[str], drop: Sequence[str]
) -> None:
    name = "register_dataclass"
    got = {"data_fields": list(data), "meta_fields": list(meta), "drop_fields": list(drop)}
    overlap = [field for field in data if field in meta]
    if overlap:
        problem = f"{_names(overlap)} of {nodetype.__qualname__} cannot be data and structure."
        expected = "data_fields and meta_fields that do not overlap"
        error(ValueError, name, problem, got=got, expected=expected)
    if not dataclasses.is_dataclass(nodetype):
        return
    of_init = [field.name for field in dataclasses.fields(nodetype) if field.init]
    given = {*data, *meta}
    missing = [field for field in of_init if field not in given and field not in drop]
    unexpected = [f for f in (*data, *meta) if f not in of_init or f in drop]
    if missing or unexpected:
        parts = [f"missing fields: {_names(missing)}"] * bool(missing)
        parts += [f"unexpected fields: {_names(unexpected)}"] * bool(unexpected)
        error(
            ValueError,
            name,
            f"the fields of {nodetype.__qualname__} do not add up; {'; '.join(parts)}.",
            got=got,
            expected=f"each field that __init__ takes, once: {_names(of_init)}",
            fix="list a field under drop_fields if it has a default and need not survive "
            "flattening",
        )


def _names(fields: Iterable[str]) -> str:
    return ", ".join(map(repr, fields))


def static(**kwargs: Any) -> Any:
    """A dataclass field that is structure; takes the arguments of `dataclasses.field`.

    Example:
        >>> import dataclasses
        >>> @jax.tree_util.register_dataclass
        ... @dataclasses.dataclass
        ... class State:
        ...     x: int
        ...     mode: str = jax.tree.static()
        >>> jax.tree.leaves(State(1, "train"))
        [1]
    """
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)


class _Opaque:
    """A callable that `functools.partial` does not look into: it merges nested partials."""

    __slots__ = ("__wrapped__",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Opaque):
            return bool(self.__wrapped__ == other.__wrapped__)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


@source.boundaries("__new__")
class Partial(functools.partial[Any]):
    """`functools.partial` as a node: the bound arguments are children, the function structure.

    The function must be hashable; two nodes match if their functions are equal.

    Example:
        >>> scale = jax.tree_util.Partial(jnp.multiply, 3)
        >>> jax.tree.leaves(scale), jax.jit(lambda f, x: f(x))(scale, jnp.array([1, 2]))
        ([3], Array([3, 6], dtype=int32))
    """

    def __new__(cls, func: Callable[..., Any], *args: Any, **kw: Any) -> Partial:
        function = _Opaque(func) if isinstance(func, functools.partial) else func
        return super().__new__(cls, function, *args, **kw)


register_pytree_node(
    Partial,
    lambda node: ((node.args, node.keywords), node.func),
    lambda function, children: Partial(function, *children[0], **children[1]),
)


def _flatten_defaultdict(
    node: collections.defaultdict[Any, Any],
) -> tuple[list[Any], tuple[Any, tuple[Any, ...]]]:
    keys = tuple(sorted(node))
    return [node[key] for key in keys], (node.default_factory, keys)


def _flatten_defaultdict_with_keys(
    node: collections.defaultdict[Any, Any],
) -> tuple[list[KeyLeafPair], tuple[Any, tuple[Any, ...]]]:
    keys = tuple(sorted(node))
    return [(DictKey(key), node[key]) for key in keys], (node.default_factory, keys)


register_pytree_node(
    collections.OrderedDict,
    lambda node: (list(node.values()), tuple(node)),
    lambda keys, children: collections.OrderedDict(zip(keys, children, strict=True)),
    lambda node: ([(DictKey(key), child) for key, child in node.items()], tuple(node)),
)
register_pytree_node(
    collections.defaultdict,
    _flatten_defaultdict,
    lambda data, children: collections.defaultdict(data[0], zip(data[1], children, strict=True)),
    _flatten_defaultdict_with_keys,
)
