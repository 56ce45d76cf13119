"""Key paths of the leaves of pytrees as text, and error messages that say where two pytrees differ.

Input: key paths, tree definitions, or the trees themselves.  Output: names of leaves, such as
`params['w']` or `args[0].bias`, for errors, debug information and pages; the differences between
two trees with their key paths; and errors that list all of these.
"""

from __future__ import annotations

import collections
import inspect
import itertools
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from minijax.core import tree_registry
from minijax.core.errors import message
from minijax.core.native import DictKey, FlattenedIndexKey, GetAttrKey, PyTreeDef, SequenceKey
from minijax.core.tree_registry import KeyPath


def keystr(keys: KeyPath[Any], *, simple: bool = False, separator: str = "") -> str:
    """The text of a key path: `['a'][2].b`, or with `simple` the bare names, as in `a/2/b`.

    Example:
        >>> path, _ = jax.tree.leaves_with_path({"layers": [{"w": 1}]})[0]
        >>> jax.tree_util.keystr(path), jax.tree_util.keystr(path, simple=True, separator="/")
        ("['layers'][0]['w']", 'layers/0/w')
    """
    return separator.join(map(_simple_text if simple else str, keys))


def _simple_text(key: Hashable) -> str:
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


_LISTED = 8


class Difference(NamedTuple):
    """One place at which two trees have different nodes."""

    path: KeyPath[Any]
    first: str
    second: str
    reason: str
    fix: str


def differences(
    first: PyTreeDef, second: PyTreeDef, leaves: Sequence[Any] | None = None, *, prefix: bool
) -> Iterator[Difference]:
    """The differences between two structures, none below another one.

    Args:
        first: the prefix, or the first of two equals.
        second: the full structure.
        leaves: the leaves of the full tree, if at hand: their types are named.
        prefix: whether a leaf of `first` may stand for a whole subtree of `second`.
    """
    if prefix and first.node_data() is None:
        return
    if is_same_node(first, second):
        keys = child_keys(second)
        start = 0
        for key, one, other in zip(keys, first.children(), second.children(), strict=True):
            part = None if leaves is None else leaves[start : start + other.num_leaves]
            start += other.num_leaves
            for found in differences(one, other, part, prefix=prefix):
                yield found._replace(path=(key, *found.path))
    else:
        reason, fix = _explanation(first, second, prefix=prefix)
        yield Difference((), describe(first), describe(second, leaves), reason, fix)


def is_same_node(first: PyTreeDef, second: PyTreeDef) -> bool:
    """Whether the roots of two structures agree in type, number of children and metadata."""
    one, other = first.node_data(), second.node_data()
    if one is None or other is None:
        return one is other
    return (
        one[0] is other[0]
        and len(first.children()) == len(second.children())
        and _are_equal(one[1], other[1])
    )


def _are_equal(data: object, other: object) -> bool:
    try:
        return bool(data == other)
    except Exception:
        # Arrays as metadata have no truth value: that is a difference.
        return False


def _keys(treedef: PyTreeDef) -> list[Any] | None:
    """The keys of a dictionary-like node."""
    node: Any = treedef.node_data()
    nodetype, data = node
    if nodetype is dict or nodetype is collections.OrderedDict:
        return list(data)
    return list(data[1]) if nodetype is collections.defaultdict else None


def describe(treedef: PyTreeDef, leaves: Sequence[Any] | None = None) -> str:
    """What stands at the root of a tree, in a few words: `list of length 2`, `None`."""
    node = treedef.node_data()
    if node is None:
        return f"leaf of type {_type_text(leaves[0])}" if leaves else "leaf"
    nodetype, data = node
    if nodetype is type(None):
        return "None"
    keys = _keys(treedef)
    if keys is not None:
        return f"{nodetype.__name__} with keys {_listed(keys)}" if keys else "empty dict"
    count = len(treedef.children())
    if nodetype is list or nodetype is tuple:
        return f"{nodetype.__name__} of length {count}"
    name = f"{nodetype.__module__}.{nodetype.__qualname__}"
    if data is None or data == ():
        return f"{name} with {count} child{'ren' * (count != 1)}"
    return f"{name} with {count} child{'ren' * (count != 1)} and metadata {data!r}"


def _type_text(leaf: object) -> str:
    """The type of a leaf, as users know it: that of a traced value is the array's."""
    aval = getattr(leaf, "aval", None)
    return type(leaf).__name__ if aval is None else str(aval)


def _listed(values: Sequence[Any]) -> str:
    shown = ", ".join(repr(value) for value in values[:_LISTED])
    return f"{shown}, and {len(values) - _LISTED} more" if len(values) > _LISTED else shown


def _explanation(first: PyTreeDef, second: PyTreeDef, *, prefix: bool) -> tuple[str, str]:
    """Why the roots of two structures differ, and the remedy."""
    one, other = first.node_data(), second.node_data()
    or_leaf = ", or one leaf for all of it" if prefix else ""
    if type(None) in (one and one[0], other and other[0]):
        return (
            "None is a node without children, and matches None only",
            "pass is_leaf=lambda x: x is None to make None a leaf",
        )
    if one is None or other is None:
        return "one of them is a leaf", f"give both the same structure{or_leaf}"
    if one[0] is not other[0]:
        return "their types differ", f"use the same type in both{or_leaf}"
    keys, other_keys = _keys(first), _keys(second)
    if keys is not None and other_keys is not None and keys != other_keys:
        return _key_explanation(keys, other_keys), f"use the same keys in both{or_leaf}"
    if len(first.children()) != len(second.children()):
        return "their lengths differ", f"use as many entries in both{or_leaf}"
    return (
        "their metadata differ",
        "use equal metadata; they must be hashable and comparable, so arrays belong in children",
    )


def _key_explanation(keys: Sequence[Any], others: Sequence[Any]) -> str:
    lacking = [key for key in others if key not in keys]
    others_lacking = [key for key in keys if key not in others]
    parts = [f"the former lacks {_listed(lacking)}"] * bool(lacking)
    parts += [f"the latter lacks {_listed(others_lacking)}"] * bool(others_lacking)
    return ", ".join(parts) or "their keys are in different orders"


def mismatch_error(
    user: str, problem: str, found: Iterable[Difference], *, first: str, second: str, hint: str = ""
) -> ValueError:
    """One error that lists every difference; `first` and `second` name the two trees."""
    found = list(found)
    pairs = [
        f"{first}{keystr(item.path)}: {item.first}   "
        f"{second}{keystr(item.path)}: {item.second}   ({item.reason})"
        for item in found
    ]
    fixes = list(dict.fromkeys(item.fix for item in found))
    return ValueError(
        message(
            user,
            problem,
            got="\n".join(pairs) or None,
            expected=f"{first} to have the structure of {second}, down to the leaves of {first}",
            fix="\n".join([*fixes, hint] if hint else fixes) or None,
        )
    )


def prefix_errors(
    prefix_tree: object, full_tree: object, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    """Why `prefix_tree` is not a prefix of `full_tree`: functions from its name to an error."""
    prefix = tree_registry.registry.flatten(prefix_tree, is_leaf)[1]
    leaves, full = tree_registry.registry.flatten(full_tree)
    return [_error_of_name(found) for found in differences(prefix, full, leaves, prefix=True)]


def _error_of_name(found: Difference) -> Callable[[str], ValueError]:
    def error(name: str) -> ValueError:
        problem = f"{name} is not a tree prefix of the value: {found.reason}."
        return mismatch_error("", problem, [found], first=name, second="value")

    return error


def equality_errors(
    tree1: object, tree2: object, is_leaf: Callable[[Any], bool] | None = None
) -> Iterator[tuple[KeyPath[Any], str, str, str]]:
    """Where two trees, or two tree definitions, differ.

    Yields `(key path, the first's node, the second's node, reason)`.
    """
    first, second = _structure(tree1, is_leaf), _structure(tree2, is_leaf)
    for found in differences(first, second, prefix=False):
        yield found.path, found.first, found.second, found.reason


def _structure(tree: object, is_leaf: Callable[[Any], bool] | None) -> PyTreeDef:
    return tree if isinstance(tree, PyTreeDef) else tree_registry.registry.flatten(tree, is_leaf)[1]


def map_error(
    user: str, treedef: PyTreeDef, rest: Sequence[Any], original: ValueError
) -> ValueError:
    """The error of mapping over trees where one of `rest` does not have the structure `treedef`."""
    for i, tree in enumerate(rest):
        leaves, full = tree_registry.registry.flatten(tree)
        found = list(differences(treedef, full, leaves, prefix=True))
        if found:
            name = f"rest[{i}]"
            problem = f"the structure of {name} does not match that of tree."
            if all("lacks" in item.reason for item in found):
                problem = "; ".join(_missing_keys(item, name) for item in found[:_LISTED]) + "."
            return mismatch_error(user, problem, found, first="tree", second=name)
    return original


def _missing_keys(found: Difference, name: str) -> str:
    """Which keys a dictionary lacks, in words: `rest[0]['dense'] lacks the key 'bias'`."""
    place = keystr(found.path)
    text = found.reason.replace("the former lacks", f"tree{place} lacks the key")
    return text.replace("the latter lacks", f"{name}{place} lacks the key")


def forgets_return(out_tree: PyTreeDef) -> bool:
    """Whether a function returned None, as one does that lacks a `return`."""
    node = out_tree.node_data()
    return node is not None and node[0] is type(None)


def flatten_error(
    tree: object, is_leaf: Callable[[Any], bool] | None, original: ValueError | SystemError
) -> Exception:
    """The error of a tree that cannot be flattened, with the place of the guilty node."""
    if isinstance(original, SystemError):
        return _depth_error(original)
    path: KeyPath[Any] = ()
    node = tree
    while (step := _guilty_child(node, is_leaf)) is not None:
        path = (*path, step[0])
        node = step[1]
    place = f"tree{keystr(path)}"
    if type(node) is not dict:
        original.add_note(f"  while flattening {place}, of type {type(node).__name__}")
        return original
    return ValueError(
        message(
            "tree.flatten",
            f"the keys of {place} cannot be sorted.",
            got=f"{place}: keys {_listed(list(node))}",
            expected="keys that compare with each other: the order of leaves is that of the keys",
            fix="use keys of one type, or a collections.OrderedDict, which keeps its own order",
        )
    )


def _depth_error(original: SystemError) -> Exception:
    # C++ leaves Python's RecursionError behind, which becomes the cause of a SystemError.
    if not isinstance(original.__cause__, RecursionError):
        return original
    return RecursionError(
        message(
            "tree.flatten",
            "the tree is nested too deeply, or contains itself.",
            expected="fewer levels than sys.getrecursionlimit()",
            fix="break the cycle, or stack the levels into one array and scan over it",
        )
    )


def _guilty_child(node: object, is_leaf: Callable[[Any], bool] | None) -> tuple[Any, Any] | None:
    try:
        one_level = tree_registry.registry.flatten_one_level_with_keys(node)
    except ValueError:
        return None
    for key, child in one_level[0] if one_level else ():
        try:
            tree_registry.registry.flatten(child, is_leaf)
        except ValueError:
            return key, child
    return None
