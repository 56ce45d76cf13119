"""Names for the leaves of trees: `params['w']`, `args[0].bias`.

Input: key paths, or a tree definition.  Output: texts for errors, debug information and pages.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Container, Iterator, Sequence
from typing import Any, NamedTuple

from minijax.core import tree_registry
from minijax.core.native import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    PyTreeDef,
    SequenceKey,
)
from minijax.core.tree_registry import KeyPath


def keystr(keys: KeyPath[Any], *, simple: bool = False, separator: str = "") -> str:
    """The text of a key path: `['a'][2].b`, or with `simple` the bare names, as in `a/2/b`.

    Source:     mirrors jax.tree_util.keystr (0.10).

    Example:
        >>> path, _ = jax.tree.leaves_with_path({"layers": [{"w": 1}]})[0]
        >>> jax.tree_util.keystr(path), jax.tree_util.keystr(path, simple=True, separator="/")
        ("['layers'][0]['w']", 'layers/0/w')
    """
    return separator.join(map(_simple_text if simple else str, keys))


def _simple_text(key: Any) -> str:
    match key:
        case SequenceKey():
            return str(key.idx)
        case DictKey() | FlattenedIndexKey():
            return str(key.key)
        case GetAttrKey():
            return str(key.name)
    return str(key)


def child_keys(treedef: PyTreeDef) -> list[Any]:
    """One key for each child of the root of `treedef`."""
    node = treedef.node_data()
    if node is None:
        return []
    nodetype, data = node
    if nodetype is dict:
        return [DictKey(key) for key in data]
    count = len(treedef.children())
    if nodetype is list or nodetype is tuple:
        return [SequenceKey(i) for i in range(count)]
    fields = tree_registry.data_fields(nodetype)
    if fields is not None:
        return [GetAttrKey(name) for name in fields]
    return _keys_of_example(treedef, count)


def _keys_of_example(treedef: PyTreeDef, count: int) -> list[Any]:
    leaf = PyTreeDef.from_node_data_and_children(tree_registry.registry, None, [])
    shallow = PyTreeDef.from_node_data_and_children(
        tree_registry.registry, treedef.node_data(), [leaf] * count
    )
    try:
        example = shallow.unflatten([object()] * count)
        one_level = tree_registry.registry.flatten_one_level_with_keys(example)
        keys = [key for key, _ in one_level[0]] if one_level else []
    except Exception:
        # User code met a child that it did not expect; numbers serve as well.
        keys = []
    return keys if len(keys) == count else [FlattenedIndexKey(i) for i in range(count)]


def leaf_paths(treedef: PyTreeDef) -> Iterator[KeyPath[Any]]:
    """The key path of each leaf, in order, from the definition alone."""
    if treedef.node_data() is None:
        yield ()
        return
    for key, child in zip(child_keys(treedef), treedef.children(), strict=True):
        for path in leaf_paths(child):
            yield (key, *path)


def leaf_name(user: str, root: str, treedef: PyTreeDef, index: int) -> str:
    """How messages of `user` name a leaf of its argument `root`: `device_put: x['w']`."""
    path = next(itertools.islice(leaf_paths(treedef), index, None))
    return f"{user}: {root}{keystr(path)}"


def argument_paths(
    in_tree: PyTreeDef, parameters: inspect.Signature | Sequence[str] | None = None
) -> tuple[str, ...]:
    """A name for each leaf of `(args, kwargs)`: `x`, `params['w']`, `args[0]['w']`.

    Costs microseconds per leaf: compute it when somebody asks for a name, not on every call.

    Args:
        in_tree: the structure of `(args, kwargs)`.
        parameters: the signature of the function, or the names of its positional parameters.
            Arguments beyond them are numbered, as `args[0]`, from the first one that has no name.
    """
    names = _parameter_names(parameters)
    args_def, kwargs_def = in_tree.children()
    count = len(names.positional)
    roots = [
        names.positional[i] if i < count else f"{names.rest}[{i - count}]"
        for i in range(len(args_def.children()))
    ]
    kwargs_data: Any = kwargs_def.node_data()
    for key in kwargs_data[1]:
        has_name = names.keywords is None or key in names.all_named
        roots.append(key if has_name else f"{names.keywords}[{key!r}]")
    children = (*args_def.children(), *kwargs_def.children())
    return tuple(
        root + keystr(path)
        for root, child in zip(roots, children, strict=True)
        for path in leaf_paths(child)
    )


class _ParameterNames(NamedTuple):
    positional: Sequence[str]
    rest: str
    # None: every keyword is a name of its own.
    keywords: str | None
    all_named: Container[str]


def _parameter_names(parameters: inspect.Signature | Sequence[str] | None) -> _ParameterNames:
    if parameters is None:
        return _ParameterNames((), "args", "kwargs", ())
    if not isinstance(parameters, inspect.Signature):
        return _ParameterNames(parameters, "args", None, ())
    by_kind: dict[Any, list[str]] = {}
    for parameter in parameters.parameters.values():
        by_kind.setdefault(parameter.kind, []).append(parameter.name)
    either = by_kind.get(inspect.Parameter.POSITIONAL_OR_KEYWORD, [])
    positional = by_kind.get(inspect.Parameter.POSITIONAL_ONLY, []) + either
    (rest,) = by_kind.get(inspect.Parameter.VAR_POSITIONAL, ["args"])
    (keywords,) = by_kind.get(inspect.Parameter.VAR_KEYWORD, [None])
    named = either + by_kind.get(inspect.Parameter.KEYWORD_ONLY, [])
    return _ParameterNames(positional, rest, keywords, named)
