"""Trees of values: take apart, put together, map; step 1 and step 8 of a call.

Input: nested containers.  Output: a list of leaves and a tree definition, and back.  The work is
done by jaxlib's C++ pytrees, with registries of our own (`core/tree_registry.py`).  The texts of
errors, and names of leaves, are in `core/tree_errors.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

from jaxlib import _jax

from minijax.core import tree_errors
from minijax.core.errors import error
from minijax.core.native import PyTreeDef
from minijax.core.sequences import UNSPECIFIED
from minijax.core.tree_registry import KeyPath, registry

T = TypeVar("T")

IsLeaf = Callable[[Any], bool] | None

_flatten = registry.flatten
_flatten_with_path = registry.flatten_with_path
_map = map


def flatten(tree: object, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of `tree`, and the definition that puts them back together.

    Tuples, lists, dicts (by sorted key), named tuples, OrderedDict, defaultdict and None are
    nodes, as are registered classes; all else is a leaf, and so is what `is_leaf` says to be one.

    Raises:
        ValueError: the keys of a dict cannot be sorted, or a registered function misbehaves.
        RecursionError: the tree contains itself.

    Example:
        >>> leaves, treedef = jax.tree.flatten({"b": [1, 2], "a": (3, None)})
        >>> leaves
        [3, 1, 2]
        >>> treedef
        PyTreeDef({'a': (*, None), 'b': [*, *]})
    """
    try:
        return _flatten(tree, is_leaf)
    except (ValueError, SystemError) as error:
        raise tree_errors.flatten_error(tree, is_leaf, error) from None


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of structure `treedef` with `leaves`: the inverse of `flatten`.

    Raises:
        ValueError: too few leaves, or too many.

    Example:
        >>> leaves, treedef = jax.tree.flatten({"a": 1, "b": [2, 3]})
        >>> jax.tree.unflatten(treedef, [10, 20, 30])
        {'a': 10, 'b': [20, 30]}
    """
    try:
        return treedef.unflatten(leaves)
    except ValueError:
        if not isinstance(leaves, Sequence) or len(leaves) == treedef.num_leaves:
            raise
        problem = f"{len(leaves)} leaves do not fit the tree definition."
        got = {"leaves": len(leaves), "treedef": treedef}
        expected = f"{treedef.num_leaves} leaves"
        fix = "flatten the tree and its replacement with the same is_leaf"
        error(
            ValueError, "tree.unflatten", problem, got=got, expected=expected, fix=fix, cause=None
        )


def leaves(tree: object, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of `tree`.

    Example:
        >>> jax.tree.leaves({"b": 2, "a": [1, None]})
        [1, 2]
        >>> jax.tree.leaves([1, None], is_leaf=lambda x: x is None)
        [1, None]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: object, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The definition of `tree`.

    Example:
        >>> jax.tree.structure({"a": [1, 2]}) == jax.tree.structure({"a": ["x", "y"]})
        True
    """
    return flatten(tree, is_leaf)[1]


def flatten_up_to(user: str, treedef: PyTreeDef, rest: Sequence[Any]) -> list[list[Any]]:
    """What stands in other trees where a tree has its leaves; `user` asked for it."""
    try:
        return [treedef.flatten_up_to(tree) for tree in rest]
    except ValueError as error:
        raise tree_errors.map_error(user, treedef, rest, error) from None


def map(f: Callable[..., Any], tree: object, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Applies `f` to each leaf of `tree`, and to what stands at the same place in `rest`.

    Raises:
        ValueError: `tree` is not a tree prefix of one of `rest`.

    Example:
        >>> jax.tree.map(lambda w, g: w - g, {"w": 5, "b": [1]}, {"w": 2, "b": [1]})
        {'b': [0], 'w': 3}
    """
    values, treedef = flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(value) for value in values])
    columns = flatten_up_to("tree.map", treedef, rest)
    return treedef.unflatten(list(_map(f, values, *columns)))


def _path_predicate(is_leaf: Callable[..., bool] | None, takes_path: bool) -> Any:
    if is_leaf is None or takes_path:
        return is_leaf
    return lambda _, node: is_leaf(node)


def flatten_with_path(
    tree: object, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath[Any], Any]], PyTreeDef]:
    """Like `flatten`, with `(key path, leaf)` for each leaf.

    With `is_leaf_takes_path`, `is_leaf` is called with the key path and the node.

    Example:
        >>> found, _ = jax.tree.flatten_with_path({"w": [1, 2]})
        >>> found[1]
        ((DictKey(key='w'), SequenceKey(idx=1)), 2)
    """
    try:
        return _flatten_with_path(tree, _path_predicate(is_leaf, is_leaf_takes_path))
    except (ValueError, SystemError) as error:
        raise tree_errors.flatten_error(tree, None, error) from None


def leaves_with_path(
    tree: object, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath[Any], Any]]:
    """The leaves with their key paths.

    Example:
        >>> for path, x in jax.tree.leaves_with_path({"w": [1, 2]}):
        ...     print(jax.tree_util.keystr(path), x)
        ['w'][0] 1
        ['w'][1] 2
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(
    f: Callable[..., Any],
    tree: object,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Like `map`, where `f` takes the key path first.

    Raises:
        ValueError: `tree` is not a tree prefix of one of `rest`.

    Example:
        >>> jax.tree.map_with_path(lambda path, x: (path[0].key, x), {"w": 1, "b": 2})
        {'b': ('b', 2), 'w': ('w', 1)}
    """
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = flatten_up_to("tree.map_with_path", treedef, rest)
    paths = [path for path, _ in pairs]
    values = [value for _, value in pairs]
    return treedef.unflatten(list(_map(f, paths, values, *columns)))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether each element of `iterable` is a leaf.

    Source:     mirrors jax.tree_util.all_leaves (0.10); superset: `is_leaf` is asked about the
                elements only, whatever the type of `iterable`.

    Example:
        >>> jax.tree_util.all_leaves([1, "x"]), jax.tree_util.all_leaves([1, [2]])
        (True, False)
    """
    if is_leaf is None:
        return bool(_jax.pytree.all_leaves(registry, list(iterable)))
    return not any(structure(item, is_leaf).node_data() for item in iterable)


def all_true(tree: object, *, is_leaf: IsLeaf = None) -> bool:
    """Whether each leaf is true.

    Example:
        >>> jax.tree.all({"a": True, "b": [1, 0]})
        False
    """
    return all(leaves(tree, is_leaf))


def reduce(
    function: Callable[[Any, Any], T],
    tree: object,
    initializer: Any = UNSPECIFIED,
    is_leaf: IsLeaf = None,
) -> T:
    """Folds `function` over the leaves, from left to right.

    Raises:
        TypeError: there are neither leaves nor an initializer.

    Example:
        >>> jax.tree.reduce(lambda total, x: total + x, {"a": 1, "b": [2, 3]}, 0)
        6
    """
    values = leaves(tree, is_leaf)
    if initializer is not UNSPECIFIED:
        return functools.reduce(function, values, initializer)
    if not values:
        _refuse_empty("tree.reduce", "initializer")
    return functools.reduce(function, values)


def reduce_associative(
    operation: Callable[[Any, Any], T],
    tree: object,
    *,
    identity: Any = UNSPECIFIED,
    is_leaf: IsLeaf = None,
) -> T:
    """Combines the leaves pairwise, in a balanced way; `operation` has to be associative.

    The longest chain of operations has logarithmic length, which compiles to a shallow program.
    `identity` is the result for a tree without leaves.

    Raises:
        TypeError: there are neither leaves nor an identity.

    Example:
        >>> jax.tree.reduce_associative(lambda x, y: f"({x}+{y})", list("abcd"))
        '((a+b)+(c+d))'
    """

    def combine(values: list[Any]) -> Any:
        if len(values) == 1:
            return values[0]
        middle = len(values) // 2
        return operation(combine(values[:middle]), combine(values[middle:]))

    values = leaves(tree, is_leaf)
    if values:
        return combine(values)
    if identity is UNSPECIFIED:
        _refuse_empty("tree.reduce_associative", "identity")
    return identity


def _refuse_empty(user: str, argument: str) -> NoReturn:
    problem = f"a tree without leaves, and no {argument}."
    fix = f"pass {argument}, the result for no leaves"
    error(TypeError, user, problem, expected="at least one leaf", fix=fix)


def transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: object
) -> Any:
    """Turns a tree of trees inside out: a list of dicts to a dict of lists.

    `inner_treedef=None` takes the structure of the first subtree.

    Source:     mirrors jax.tree.transpose (0.10); superset: trees without leaves.

    Raises:
        TypeError: the tree has another number of leaves than the two structures together.
        ValueError: the inner structure has to be inferred, and there is no subtree.

    Example:
        >>> outer, inner = jax.tree.structure([0, 0]), jax.tree.structure({"a": 0, "b": 0})
        >>> jax.tree.transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
        {'a': [1, 3], 'b': [2, 4]}
    """
    values, treedef = flatten(pytree_to_transpose)
    if inner_treedef is None:
        subtrees = flatten_up_to("tree.transpose", outer_treedef, [pytree_to_transpose])[0]
        if not subtrees:
            problem = "there is no subtree from which to infer the inner structure."
            got = {"outer_treedef": outer_treedef}
            error(ValueError, "tree.transpose", problem, got=got, fix="pass inner_treedef")
        inner_treedef = structure(subtrees[0])
    rows, columns = outer_treedef.num_leaves, inner_treedef.num_leaves
    if len(values) != rows * columns:
        error(
            TypeError,
            "tree.transpose",
            "the tree is not composed of the two structures.",
            got={"leaves": len(values), "pytree_to_transpose": treedef},
            expected=f"{rows} × {columns} leaves: {outer_treedef.compose(inner_treedef)}",
        )
    return inner_treedef.unflatten(
        [outer_treedef.unflatten(values[i::columns]) for i in range(columns)]
    )


def broadcast_prefix(
    prefix: object,
    full: object,
    is_leaf: IsLeaf = None,
    *,
    user: str = "tree.broadcast",
    first: str = "prefix_tree",
    second: str = "full_tree",
    hint: str = "",
) -> list[Any]:
    """One leaf of `prefix` for each leaf of `full`, in the order of the latter's leaves.

    Args:
        prefix: a tree that ends earlier than `full`, or where it does.
        full: a tree.
        is_leaf: says of nodes of `prefix` whether they count as leaves.
        user: the public function, for messages.
        first: what it calls `prefix`.
        second: what it calls `full`.
        hint: one more remedy that messages propose.

    Raises:
        ValueError: prefix is not a tree prefix of full.
    """
    values, prefix_def = flatten(prefix, is_leaf)
    full_values, full_def = flatten(full)
    result = _spread(values, prefix_def, full_def)
    if result is not None:
        return result
    raise tree_errors.mismatch_error(
        user,
        f"{first} is not a tree prefix of {second}.",
        tree_errors.differences(prefix_def, full_def, full_values, prefix=True),
        first=first,
        second=second,
        hint=hint,
    )


def _spread(values: list[Any], prefix_def: PyTreeDef, full_def: PyTreeDef) -> list[Any] | None:
    """A value for each leaf of `full_def`; None if `prefix_def` is not a prefix of it."""
    if prefix_def == full_def:
        return values
    remaining = iter(values)
    result: list[Any] = []

    def walk(prefix: PyTreeDef, full: PyTreeDef) -> bool:
        if prefix.node_data() is None:
            result.extend([next(remaining)] * full.num_leaves)
            return True
        return tree_errors.is_same_node(prefix, full) and all(
            walk(*pair) for pair in zip(prefix.children(), full.children(), strict=True)
        )

    return result if walk(prefix_def, full_def) else None


def broadcast(prefix_tree: object, full_tree: object, is_leaf: IsLeaf = None) -> Any:
    """A tree of the structure of `full_tree`, filled with the leaves of its prefix `prefix_tree`.

    Raises:
        ValueError: prefix_tree is not a tree prefix of full_tree.

    Example:
        >>> jax.tree.broadcast({"a": 1, "b": 2}, {"a": [0, 0], "b": 0})
        {'a': [1, 1], 'b': 2}
    """
    return structure(full_tree).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def is_none(node: object) -> bool:
    """Whether a node is None: an `is_leaf` for trees in which None says something."""
    return node is None


def flatten_axes(
    name: str,
    treedef: PyTreeDef,
    axis_tree: object,
    *,
    tupled_args: bool = False,
    value: str = "value",
) -> list[Any]:
    """One entry of `axis_tree`, a tree prefix with None as a leaf, for each leaf of `treedef`.

    Args:
        name: the function and the argument, as in `vmap in_axes`; the last word names paths.
        treedef: the structure of the value that the axes describe.
        axis_tree: what the user gave.
        tupled_args: whether the value is a tuple of arguments, and the axes have to be as well.
        value: the name of the value in error texts, such as `args`.

    Raises:
        ValueError: axis_tree is not a tree prefix; all mismatches are listed.
    """
    axes, axes_def = flatten(axis_tree, is_none)
    result = _spread(axes, axes_def, treedef)
    if result is not None:
        return result
    argument = name.rpartition(" ")[2]
    needs_tuple = tupled_args and not isinstance(axis_tree, tuple)
    raise tree_errors.mismatch_error(
        name,
        f"{argument} is not a tree prefix of {value}.",
        tree_errors.differences(axes_def, treedef, prefix=True),
        first=argument,
        second=value,
        hint=f"wrap {argument} in a tuple with an entry per argument" if needs_tuple else "",
    )


def flatten_in_axes(name: str, in_tree: PyTreeDef, in_axes: object) -> list[Any]:
    """One entry of `in_axes` for each leaf of a call; keyword arguments are mapped over axis 0.

    Args:
        name: the function and the argument, as in `vmap in_axes`.
        in_tree: the structure of (args, kwargs).
        in_axes: a tree prefix of args.

    Raises:
        ValueError: it is none.
    """
    args, kwargs = in_tree.children()
    own = flatten_axes(name, args, in_axes, tupled_args=True, value="the arguments")
    return own + [0] * int(kwargs.num_leaves)


def flatten_one_level(tree: object) -> tuple[Iterable[Any], Hashable]:
    """The children of the root of `tree`, and its metadata.

    Raises:
        ValueError: tree is a leaf.

    Example:
        >>> children, keys = jax.tree_util.flatten_one_level({"a": [1, 2], "b": 3})
        >>> list(children), keys
        ([[1, 2], 3], ('a', 'b'))
    """
    return _checked_node("flatten_one_level", tree, registry.flatten_one_level(tree))


def flatten_one_level_with_keys(tree: object) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """The `(key, child)` pairs of the root of `tree`, and its metadata.

    Raises:
        ValueError: tree is a leaf.

    Example:
        >>> pairs, _ = jax.tree_util.flatten_one_level_with_keys([10, [20]])
        >>> list(pairs)
        [(SequenceKey(idx=0), 10), (SequenceKey(idx=1), [20])]
    """
    one_level = registry.flatten_one_level_with_keys(tree)
    return _checked_node("flatten_one_level_with_keys", tree, one_level)


def _checked_node(user: str, tree: object, one_level: Any) -> tuple[Iterable[Any], Any]:
    if one_level is None:
        got = f"{tree!r} of type {type(tree).__name__}"
        expected = "a container or an instance of a registered class"
        fix = "register the class with register_pytree_node or register_dataclass"
        error(ValueError, user, "a leaf has no children.", got=got, expected=expected, fix=fix)
    return one_level


def is_tree_node(typ: type) -> bool:
    """Whether instances of `typ` are nodes.

    Example:
        >>> jax.tree_util.is_tree_node(dict), jax.tree_util.is_tree_node(set)
        (True, False)
    """
    return bool(registry.is_node(typ))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The definitions of the children.

    Example:
        >>> jax.tree_util.treedef_children(jax.tree.structure([1, (2, 3)]))
        [PyTreeDef(*), PyTreeDef((*, *))]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether `treedef` is a single node, a leaf or None.

    Example:
        >>> jax.tree_util.treedef_is_leaf(jax.tree.structure(5))
        True
    """
    return bool(treedef.num_nodes == 1)


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The definition of a tuple of trees.

    Raises:
        TypeError: one of them is not a tree definition.

    Example:
        >>> jax.tree_util.treedef_tuple([jax.tree.structure(1), jax.tree.structure({"a": 2})])
        PyTreeDef((*, {'a': *}))
    """
    definitions = list(treedefs)
    try:
        return _jax.pytree.treedef_tuple(registry, definitions)
    except RuntimeError:
        types = ", ".join(type(item).__name__ for item in definitions)
        problem = "not everything is a tree definition."
        expected = "PyTreeDef instances"
        fix = "pass tree.structure(value) instead of the value"
        error(
            TypeError, "treedef_tuple", problem, got=types, expected=expected, fix=fix, cause=None
        )


def build_tree(treedef: PyTreeDef, children: object) -> Any:
    """The tree of structure `treedef` whose nodes' children come from nested iterables."""
    return treedef.from_iterable_tree(children)
