"""Trees: laws over random ones, JAX's recorded structures, custom nodes, and texts of errors."""

import collections
import copy
import dataclasses
import functools
import inspect
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minijax import tree as tree_api
from minijax import tree_util
from minijax.core import tree, tree_errors, tree_registry

pytestmark = pytest.mark.feature("CR-12")

Point = collections.namedtuple("Point", ["x", "y"])
Pair = collections.namedtuple("Pair", ["x", "y"])


@tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Layer:
    w: object
    b: object
    activation: object = tree_api.static(default="relu")


@tree_util.register_pytree_with_keys_class
class Named:
    """A node with keys that refuses children which are not numbers or strings."""

    def __init__(self, left, right):
        self.left = left
        self.right = right

    def tree_flatten_with_keys(self):
        left, right = tree_util.GetAttrKey("left"), tree_util.DictKey("right")
        return [(left, self.left), (right, self.right)], None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@tree_util.register_pytree_node_class
class Unnamed:
    """A node without keys, and with metadata."""

    def __init__(self, children, tag):
        self.children = children
        self.tag = tag

    def tree_flatten(self):
        return self.children, self.tag

    @classmethod
    def tree_unflatten(cls, tag, children):
        return cls(tuple(children), tag)


class Refusing:
    """A node whose constructor takes ints only, and so no placeholder."""

    def __init__(self, value):
        if not isinstance(value, int):
            raise TypeError("ints only")
        self.value = value


tree_util.register_pytree_with_keys(
    Refusing,
    lambda node: ([(tree_util.GetAttrKey("value"), node.value)], None),
    lambda _, children: Refusing(*children),
)


@tree_util.register_static
class Mode(str):
    __slots__ = ()


def is_none(node):
    return node is None


def nodes(children):
    """Strategies for one level above `children`."""
    keys = st.text("abc", max_size=2)
    pairs = st.tuples(children, children)
    return st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.dictionaries(keys, children, max_size=3),
        st.dictionaries(keys, children, max_size=3).map(collections.OrderedDict),
        st.dictionaries(keys, children, max_size=3).map(
            lambda items: collections.defaultdict(int, items)
        ),
        pairs.map(lambda pair: Point(*pair)),
        pairs.map(lambda pair: Layer(*pair)),
    )


trees = st.recursive(st.integers() | st.none(), nodes, max_leaves=10)


@given(trees)
def test_unflatten_undoes_flatten(value):
    leaves, treedef = tree.flatten(value)
    assert tree.unflatten(treedef, leaves) == value


@given(trees)
def test_map_of_identity_is_identity(value):
    assert tree.map(lambda leaf: leaf, value) == value


@given(trees)
def test_map_composes(value):
    twice = tree.map(lambda leaf: 3 * leaf, tree.map(lambda leaf: leaf + 1, value))
    assert tree.map(lambda leaf: 3 * (leaf + 1), value) == twice


@given(trees)
def test_paths_lead_to_the_leaves(value):
    def follow(node, key):
        if isinstance(key, tree_util.GetAttrKey):
            return getattr(node, key.name)
        return node[key.idx if isinstance(key, tree_util.SequenceKey) else key.key]

    pairs = tree.leaves_with_path(value)
    assert [functools.reduce(follow, path, value) for path, _ in pairs] == tree.leaves(value)


@given(trees)
def test_paths_of_a_structure_are_those_of_its_tree(value):
    pairs, treedef = tree.flatten_with_path(value)
    assert list(tree_errors.leaf_paths(treedef)) == [path for path, _ in pairs]


@given(trees)
def test_a_leaf_is_a_prefix_of_every_tree(value):
    assert tree.broadcast_prefix(7, value) == [7] * len(tree.leaves(value))


@given(trees)
def test_a_tree_is_its_own_prefix(value):
    assert tree.broadcast_prefix(value, value) == tree.leaves(value)
    assert tree_errors.prefix_errors(value, value) == []


@given(trees, trees)
def test_prefix_errors_are_empty_where_broadcast_succeeds(prefix, full):
    try:
        tree.broadcast_prefix(prefix, full)
    except ValueError:
        assert tree_errors.prefix_errors(prefix, full)
    else:
        assert tree_errors.prefix_errors(prefix, full) == []


@given(trees, trees)
def test_equality_errors_are_empty_for_equal_structures_only(first, second):
    are_equal = tree.structure(first) == tree.structure(second)
    assert (list(tree_errors.equality_errors(first, second)) == []) == are_equal


@given(trees)
def test_structures_survive_pickling(value):
    treedef = tree.structure(value)
    assert pickle.loads(pickle.dumps(treedef)) == treedef


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([1, (2, None), {}], "PyTreeDef([*, (*, None), {}])"),
        ({"b": 1, "a": [2]}, "PyTreeDef({'a': [*], 'b': *})"),
        (Point(1, 2), "PyTreeDef(CustomNode(namedtuple[Point], [*, *]))"),
        (
            collections.OrderedDict([("z", 1), ("a", 2)]),
            "PyTreeDef(CustomNode(OrderedDict[('z', 'a')], [*, *]))",
        ),
        (
            collections.defaultdict(int, {"z": 1, "a": 2}),
            "PyTreeDef(CustomNode(defaultdict[(<class 'int'>, ('a', 'z'))], [*, *]))",
        ),
        (collections.deque([1, 2]), "PyTreeDef(*)"),
        (Layer(1, 2), "PyTreeDef(CustomNode(Layer[('relu',)], [*, *]))"),
        (Mode("train"), "PyTreeDef(CustomNode(Mode[train], []))"),
        (
            tree_util.Partial(print, 1, sep=2),
            "PyTreeDef(CustomNode(Partial[<built-in function print>], [(*,), {'sep': *}]))",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_structure_is_that_of_jax(value, expected):
    assert repr(tree.structure(value)) == expected


def test_leaves_of_a_dict_are_sorted_by_key():
    assert tree.leaves({"b": 1, "a": 2}) == [2, 1]


def test_leaves_of_an_ordered_dict_keep_their_order():
    assert tree.leaves(collections.OrderedDict([("b", 1), ("a", 2)])) == [1, 2]


def test_subclasses_of_containers_are_leaves():
    counter = collections.Counter("ab")
    assert tree.leaves([counter]) == [counter]


def test_is_leaf_makes_none_a_leaf():
    assert tree.leaves([1, None], is_leaf=is_none) == [1, None]


def test_is_leaf_may_take_the_path():
    found = tree.leaves_with_path(
        [{"a": 1}, 2], is_leaf=lambda path, _: len(path) == 1, is_leaf_takes_path=True
    )
    assert [leaf for _, leaf in found] == [{"a": 1}, 2]


def test_map_hands_over_subtrees_of_the_rest():
    mapped = tree.map(lambda x, y: (x, y), [1, {"a": 2}], [[3], {"a": (4, 5)}])
    assert mapped == [(1, [3]), {"a": (2, (4, 5))}]


def test_map_with_path_names_the_leaves():
    mapped = tree.map_with_path(
        lambda path, x, y: f"{tree_errors.keystr(path)}={x + y}", [1, {"a": 2}], [3, {"a": 4}]
    )
    assert mapped == ["[0]=4", {"a": "[1]['a']=6"}]


def test_all_leaves_rejects_none():
    assert tree.all_leaves([1, "a"])
    assert not tree.all_leaves([1, None])


def test_all_leaves_asks_is_leaf_about_the_elements():
    assert tree.all_leaves([[1], [2]], is_leaf=lambda node: isinstance(node, list))


def test_all_ignores_none():
    assert tree_api.all({"a": True, "b": None})
    assert not tree_api.all([1, 0])


def test_reduce_goes_from_left_to_right():
    assert tree.reduce(lambda x, y: (x, y), [1, {"a": 2}, 3], None) == (((None, 1), 2), 3)


def test_reduce_associative_is_balanced_as_in_jax():
    def pair(x, y):
        return (x, y)

    assert tree.reduce_associative(pair, [1, 2, 3, 4, 5]) == ((1, 2), (3, (4, 5)))


def test_reduce_associative_of_nothing_is_the_identity():
    assert tree.reduce_associative(max, [None], identity=0) == 0


def test_transpose_turns_a_list_of_dicts_to_a_dict_of_lists():
    outer, inner = tree.structure([0, 0]), tree.structure({"a": 0, "b": 0})
    value = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert tree.transpose(outer, inner, value) == {"a": [1, 3], "b": [2, 4]}


def test_transpose_infers_the_inner_structure():
    value = (Point(1, 2), Point(3, 4))
    assert tree.transpose(tree.structure((0, 0)), None, value) == Point((1, 3), (2, 4))


def test_broadcast_repeats_the_leaves_of_the_prefix():
    assert tree.broadcast([1, 2], [{"a": 3, "b": None}, (4, 5)]) == [{"a": 1, "b": None}, (2, 2)]


def test_broadcast_prefix_takes_none_where_it_is_a_leaf():
    assert tree.broadcast_prefix([1, None], [{"a": 3, "b": 4}, 5], is_none) == [1, 1, None]


def test_treedef_tuple_puts_structures_together():
    parts = [tree.structure(1), tree.structure([1, None])]
    assert tree.treedef_tuple(iter(parts)) == tree.structure((1, [1, None]))


def test_treedef_children_takes_it_apart():
    assert tree.treedef_children(tree.structure([1, (2,)])) == list(map(tree.structure, (1, (2,))))


@pytest.mark.parametrize(("value", "expected"), [(1, True), (None, True), ([], True), ([1], False)])
def test_treedef_is_leaf_counts_nodes(value, expected):
    assert tree.treedef_is_leaf(tree.structure(value)) is expected


def test_build_tree_takes_nested_iterables():
    assert tree.build_tree(tree.structure([1, {"a": 2}]), (3, [4])) == [3, {"a": 4}]


def test_flatten_one_level_stops_at_the_children():
    assert tree.flatten_one_level({"a": [1]}) == (([1],), ("a",))


def test_flatten_one_level_with_keys_names_the_children():
    assert tree.flatten_one_level_with_keys({"a": [1]}) == (((KEYS[0], [1]),), ("a",))


def test_flatten_one_level_with_keys_names_the_fields_of_named_tuples():
    x, y = tree_util.GetAttrKey("x"), tree_util.GetAttrKey("y")
    assert tree.flatten_one_level_with_keys(Point(1, None)) == (((x, 1), (y, None)), Point)


@pytest.mark.parametrize(
    ("cls", "expected"), [(dict, True), (type(None), True), (Layer, True), (int, False)]
)
def test_is_tree_node(cls, expected):
    assert tree.is_tree_node(cls) is expected


KEYS = (
    tree_util.DictKey("a"),
    tree_util.SequenceKey(2),
    tree_util.GetAttrKey("b"),
    tree_util.FlattenedIndexKey(3),
    "x",
)


def test_keystr_reads_like_python():
    assert tree_errors.keystr(KEYS) == "['a'][2].b[<flat index 3>]x"


def test_keystr_simple_joins_bare_names():
    assert tree_errors.keystr(KEYS, simple=True, separator="/") == "a/2/b/3/x"


def test_nodes_with_keys_name_their_children():
    paths = [tree_errors.keystr(path) for path, _ in tree.leaves_with_path(Named([1], 2))]
    assert paths == [".left[0]", "['right']"]


def test_nodes_without_keys_number_their_children():
    paths = [tree_errors.keystr(path) for path, _ in tree.leaves_with_path(Unnamed((1, 2), "tag"))]
    assert paths == ["[<flat index 0>]", "[<flat index 1>]"]


def test_paths_of_a_structure_survive_constructors_that_refuse_placeholders():
    (path,) = tree_errors.leaf_paths(tree.structure([Refusing(3)]))
    assert tree_errors.keystr(path) == "[0][<flat index 0>]"


def arguments(*args, **kwargs):
    return tree.structure((args, kwargs))


def test_argument_paths_follow_a_signature():
    def loss(params, *batches, scale=1.0, **options):
        return params, batches, scale, options

    in_tree = arguments({"w": 1, "b": [2, 3]}, 4, (5,), scale=6, z={"q": 7})
    assert tree_errors.argument_paths(in_tree, inspect.signature(loss)) == (
        "params['b'][0]",
        "params['b'][1]",
        "params['w']",
        "batches[0]",
        "batches[1][0]",
        "scale",
        "options['z']['q']",
    )


def test_argument_paths_follow_a_list_of_names():
    names = tree_errors.argument_paths(arguments(Layer(1, 2), 3, k=4), ["layer"])
    assert names == ("layer.w", "layer.b", "args[0]", "k")


def test_argument_paths_need_no_names():
    assert tree_errors.argument_paths(arguments({"w": 1}, k=2)) == ("args[0]['w']", "kwargs['k']")


def test_static_fields_are_structure():
    assert tree.structure(Layer(1, 2)) != tree.structure(Layer(1, 2, "tanh"))


def test_static_keeps_other_metadata():
    field = tree_api.static(default=1, metadata={"doc": "text"})
    assert dict(field.metadata) == {"static": True, "doc": "text"}


def test_dropped_fields_fall_back_to_their_defaults():
    @functools.partial(tree_util.register_dataclass, drop_fields=["cache"])
    @dataclasses.dataclass
    class Cached:
        x: int
        cache: int = 0

    assert tree.map(lambda leaf: leaf, Cached(1, cache=5)) == Cached(1, cache=0)


def test_register_dataclass_takes_other_classes_with_field_lists():
    class Plain:
        def __init__(self, a, b):
            self.a = a
            self.b = b

    tree_util.register_dataclass(Plain, data_fields=["a"], meta_fields=["b"])
    doubled = tree.map(lambda leaf: 2 * leaf, Plain(1, "b"))
    assert (doubled.a, doubled.b) == (2, "b")


def test_metadata_reaches_unflatten():
    mapped = tree.map(lambda leaf: -leaf, Unnamed((1, 2), "tag"))
    assert (mapped.children, mapped.tag) == ((-1, -2), "tag")


def test_pairs_with_keys_may_be_lists():
    class Listing:
        pass

    tree_util.register_pytree_with_keys(
        Listing, lambda _: ([["k", 1]], None), lambda _, children: children
    )
    assert tree.leaves_with_path(Listing()) == [(("k",), 1)]


def test_every_registration_reaches_the_dispatch_registry():
    value = [Layer(1, 2), Named(3, 4), Unnamed((5,), 0), Mode("m"), collections.OrderedDict(a=6)]
    assert tree_registry.dispatch_registry.flatten(value)[0] == [1, 2, 3, 4, 5, 6]


def test_registration_through_the_registry_reaches_both():
    class Direct:
        pass

    tree_util.default_registry.register_node(
        Direct, lambda _: ((1,), None), lambda _, children: Direct()
    )
    assert tree.leaves(Direct()) == [1]
    assert tree_registry.dispatch_registry.flatten(Direct())[0] == [1]


def test_dispatch_only_nodes_are_leaves_of_user_trees():
    class Wrapped:
        def __init__(self, buffer):
            self.buffer = buffer

    tree_registry.register_dispatch_only_dataclass(Wrapped, ["buffer"])
    wrapped = Wrapped(3)
    assert tree.leaves(wrapped) == [wrapped]
    assert tree_registry.dispatch_registry.flatten(wrapped)[0] == [3]


def test_one_of_many_threads_registers_a_class():
    class Shared:
        pass

    barrier = threading.Barrier(8)
    outcomes = []

    def register():
        barrier.wait()
        try:
            tree_util.register_pytree_node(Shared, lambda _: ((), None), lambda *_: Shared())
        except ValueError as error:
            outcomes.append(str(error).splitlines()[0])
        else:
            outcomes.append("registered")

    threads = [threading.Thread(target=register) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("registered") == 1
    assert all("duplicate registration" in text for text in outcomes if text != "registered")


def test_partial_calls_with_the_mapped_arguments():
    halved = tree.map(lambda leaf: leaf / 2, tree_util.Partial(divmod, 9))
    assert halved(2) == divmod(4.5, 2)


def test_partial_of_a_partial_keeps_both():
    inner = functools.partial(divmod, 9)
    outer = tree_util.Partial(inner, 2)
    assert tree.leaves(outer) == [2]
    assert outer() == (4, 1)
    assert tree.structure(outer) == tree.structure(tree_util.Partial(inner, 5))


def test_partials_of_different_functions_differ():
    assert tree.structure(tree_util.Partial(min, 1)) != tree.structure(tree_util.Partial(max, 1))


def test_partial_survives_a_copy():
    assert copy.copy(tree_util.Partial(max, 1))(2) == 2


def first_line(call):
    with pytest.raises(Exception) as caught:  # noqa: PT011  the caller compares type and text
        call()
    return f"{caught.type.__name__}: {str(caught.value).splitlines()[0]}"


def add(x, y):
    return x + y


def only_data_fields():
    tree_util.register_dataclass(type("C", (), {}), data_fields=["x"])


def overlapping_fields():
    tree_util.register_dataclass(type("C", (), {}), ["x"], ["x"])


def unhandled_init_field():
    @tree_util.register_dataclass
    @dataclasses.dataclass
    class C:
        x: int
        y: int = dataclasses.field(default=0, init=False)


def missing_field():
    tree_util.register_dataclass(dataclasses.make_dataclass("C", ["x", "y"]), ["x"], [])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda: tree.map(add, [1], [1, 2]),
            "ValueError: tree.map: the structure of rest[0] does not match that of tree.",
        ),
        (
            lambda: tree.map(add, [1], [1], (1,)),
            "ValueError: tree.map: the structure of rest[1] does not match that of tree.",
        ),
        (
            lambda: tree.flatten([{"a": {1: 2, "b": 3}}]),
            "ValueError: tree.flatten: the keys of tree[0]['a'] cannot be sorted.",
        ),
        (
            lambda: tree.unflatten(tree.structure([1, 2]), [1]),
            "ValueError: tree.unflatten: 1 leaves do not fit the tree definition.",
        ),
        (
            lambda: tree.reduce(add, []),
            "TypeError: tree.reduce: a tree without leaves, and no initializer.",
        ),
        (
            lambda: tree.reduce_associative(add, []),
            "TypeError: tree.reduce_associative: a tree without leaves, and no identity.",
        ),
        (
            lambda: tree.transpose(tree.structure([0, 0]), tree.structure([0]), [1, [2, 3]]),
            "TypeError: tree.transpose: the tree is not composed of the two structures.",
        ),
        (
            lambda: tree.transpose(tree.structure([]), None, []),
            "ValueError: tree.transpose: there is no subtree from which to infer the inner "
            "structure.",
        ),
        (
            lambda: tree.broadcast([1, 2], [1]),
            "ValueError: tree.broadcast: prefix_tree is not a tree prefix of full_tree.",
        ),
        (
            lambda: tree.treedef_tuple([3]),
            "TypeError: treedef_tuple: not everything is a tree definition.",
        ),
        (
            lambda: tree.flatten_one_level(3),
            "ValueError: flatten_one_level: a leaf has no children.",
        ),
        (
            lambda: tree_util.register_dataclass(Layer),
            "ValueError: register_dataclass: duplicate registration: Layer is a pytree node "
            "already.",
        ),
        (
            lambda: tree_util.register_pytree_node(3, None, None),
            "TypeError: register_pytree_node: nodetype is not a class.",
        ),
        (
            lambda: tree_util.register_pytree_node_class(type("C", (), {})),
            "AttributeError: register_pytree_node_class: C lacks the methods tree_flatten, "
            "tree_unflatten.",
        ),
        (
            lambda: tree_util.register_dataclass(type("C", (), {})),
            "TypeError: register_dataclass: the fields of a class that is no dataclass cannot be "
            "inferred.",
        ),
        (
            only_data_fields,
            "TypeError: register_dataclass: data_fields and meta_fields belong together.",
        ),
        (
            overlapping_fields,
            "ValueError: register_dataclass: 'x' of C cannot be data and structure.",
        ),
        (
            missing_field,
            "ValueError: register_dataclass: the fields of C do not add up; missing fields: 'y'.",
        ),
    ],
)
def test_error_names_the_function_and_the_fault(call, expected):
    assert first_line(call) == expected


def test_fields_outside_init_are_not_inferred_silently():
    assert "unexpected fields: 'y'" in first_line(unhandled_init_field)


def test_a_tree_that_contains_itself_is_refused():
    cycle = []
    cycle.append(cycle)
    with pytest.raises(RecursionError, match="the tree is nested too deeply, or contains itself"):
        tree.flatten(cycle)


def test_faulty_flatten_function_is_located():
    class Faulty:
        pass

    tree_util.register_pytree_node(Faulty, lambda _: 5, lambda _, children: Faulty())
    with pytest.raises(ValueError, match="children, aux_data") as caught:
        tree.flatten({"a": [1, Faulty()]})
    assert caught.value.__notes__ == ["  while flattening tree['a'][1], of type Faulty"]


def test_map_error_lists_every_mismatch():
    first = {"a": [1, 2], "b": {"w": 3}, "c": 4, "d": None}
    second = {"a": [1, 2, 3], "b": {"v": 3}, "c": 4, "d": 5}
    with pytest.raises(ValueError, match=r"tree\.map") as caught:
        tree.map(add, first, second)
    assert str(caught.value).splitlines()[1:4] == [
        "  got       tree['a']: list of length 2   rest[0]['a']: list of length 3   "
        "(their lengths differ)",
        "            tree['b']: dict with keys 'w'   rest[0]['b']: dict with keys 'v'   "
        "(the former lacks 'v', the latter lacks 'w')",
        "            tree['d']: None   rest[0]['d']: leaf of type int   "
        "(None is a node without children, and matches None only)",
    ]


@pytest.mark.parametrize(
    ("prefix", "full", "expected"),
    [
        ([1, 2], (1, 2), "axes: list of length 2   value: tuple of length 2"),
        ({"k": [1]}, {"k": 1}, "axes['k']: list of length 1   value['k']: leaf of type int"),
        ([Point(1, 2)], [Pair(1, 2)], "Point with 2 children   value[0]: "),
        (Layer(1, [2]), Layer(1, 2), "axes.b: list of length 1   value.b: leaf of type int"),
        (Unnamed((1,), "t"), Unnamed((1,), "u"), "(their metadata differ)"),
        (Named((1,), 1), Named([1], 1), "axes.left: tuple of length 1   value.left: list of"),
        (
            Layer(1, 2, np.ones(2)),
            Layer(1, 2, np.ones(2)),
            "(their metadata differ)",
        ),
        (
            collections.OrderedDict([("a", 1), ("b", 2)]),
            collections.OrderedDict([("b", 1), ("a", 2)]),
            "(their keys are in different orders)",
        ),
        ({"k": None}, {"k": 1}, "pass is_leaf=lambda x: x is None"),
    ],
)
def test_prefix_error_names_path_and_nodes(prefix, full, expected):
    (error,) = tree_errors.prefix_errors(prefix, full)
    assert expected in str(error("axes"))


def test_equality_errors_compare_structures():
    first, second = tree.structure((1, [2])), tree.structure((1, (2,)))
    ((path, one, other, reason),) = tree_errors.equality_errors(first, second)
    assert tree_errors.keystr(path) == "[1]"
    assert (one, other, reason) == ("list of length 1", "tuple of length 1", "their types differ")


def test_equality_errors_tell_leaves_from_nodes():
    ((path, one, other, _),) = tree_errors.equality_errors([1], [[2]])
    assert (tree_errors.keystr(path), one, other) == ("[0]", "leaf", "list of length 1")


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        (0, [0, 0, 0]),
        (None, [None, None, None]),
        (([None, 1], 2), [None, 1, 2]),
        ((None, {"a": 0}), [None, None, 0]),
    ],
)
def test_flatten_axes_gives_one_entry_per_leaf(axes, expected):
    assert tree.flatten_axes("vmap in_axes", tree.structure(([1, 2], {"a": 3})), axes) == expected


def test_flatten_axes_skips_subtrees_without_leaves():
    assert tree.flatten_axes("vmap in_axes", tree.structure((None, 1)), (0, 5)) == [5]


def test_flatten_axes_builds_no_user_objects():
    assert tree.flatten_axes("vmap in_axes", tree.structure((Refusing(1), 2)), (0, 1)) == [0, 1]


def test_flatten_axes_error_names_the_argument_and_the_path():
    treedef = tree.structure(({"v": 1}, 2))
    with pytest.raises(
        ValueError, match="vmap in_axes: in_axes is not a tree prefix of args"
    ) as caught:
        tree.flatten_axes("vmap in_axes", treedef, ({"w": 0}, 0), value="args")
    assert "in_axes[0]: dict with keys 'w'   args[0]: dict with keys 'v'" in str(caught.value)


def test_flatten_axes_error_asks_for_a_tuple():
    with pytest.raises(ValueError, match="wrap in_axes in a tuple"):
        tree.flatten_axes("vmap in_axes", tree.structure((1, 2)), [0, 0], tupled_args=True)


TREE_UTIL = """DictKey FlattenedIndexKey GetAttrKey KeyEntry KeyPath Partial PyTreeDef SequenceKey
    all_leaves default_registry flatten_one_level flatten_one_level_with_keys is_tree_node keystr
    register_dataclass register_pytree_node register_pytree_node_class register_pytree_with_keys
    register_pytree_with_keys_class register_static tree_all tree_broadcast tree_flatten
    tree_flatten_with_path tree_leaves tree_leaves_with_path tree_map tree_map_with_path
    tree_reduce tree_reduce_associative tree_structure tree_transpose tree_unflatten
    treedef_children treedef_is_leaf treedef_tuple"""
TREE = """all broadcast flatten flatten_with_path leaves leaves_with_path map map_with_path reduce
    reduce_associative static structure transpose unflatten"""


@pytest.mark.parametrize(("facade", "names"), [(tree_util, TREE_UTIL), (tree_api, TREE)])
def test_facade_has_the_names_of_jax(facade, names):
    assert sorted(facade.__all__) == sorted(names.split())


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (tree.flatten, "tree is_leaf"),
        (tree.unflatten, "treedef leaves"),
        (tree.map, "f tree rest is_leaf"),
        (tree.map_with_path, "f tree rest is_leaf is_leaf_takes_path"),
        (tree.flatten_with_path, "tree is_leaf is_leaf_takes_path"),
        (tree.reduce, "function tree initializer is_leaf"),
        (tree.reduce_associative, "operation tree identity is_leaf"),
        (tree.transpose, "outer_treedef inner_treedef pytree_to_transpose"),
        (tree.broadcast, "prefix_tree full_tree is_leaf"),
        (tree_errors.keystr, "keys simple separator"),
        (tree_registry.register_dataclass, "nodetype data_fields meta_fields drop_fields"),
        (
            tree_registry.register_pytree_node,
            "nodetype flatten_func unflatten_func flatten_with_keys_func",
        ),
        (
            tree_registry.register_pytree_with_keys,
            "nodetype flatten_with_keys unflatten_func flatten_func",
        ),
    ],
)
def test_signature_is_that_of_jax(function, parameters):
    assert list(inspect.signature(function).parameters) == parameters.split()
