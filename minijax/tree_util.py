"""Trees: node types and operations, under the names of jax.tree_util."""

import minijax.core.tree
import minijax.core.tree_registry
from minijax.core import deferral
from minijax.core.native import (
    DictKey as DictKey,
    FlattenedIndexKey as FlattenedIndexKey,
    GetAttrKey as GetAttrKey,
    PyTreeDef as PyTreeDef,
    SequenceKey as SequenceKey,
)
from minijax.core.tree import (
    all_leaves as all_leaves,
    flatten_one_level as flatten_one_level,
    flatten_one_level_with_keys as flatten_one_level_with_keys,
    is_tree_node as is_tree_node,
    treedef_children as treedef_children,
    treedef_is_leaf as treedef_is_leaf,
    treedef_tuple as treedef_tuple,
)
from minijax.core.tree_errors import keystr as keystr
from minijax.core.tree_registry import (
    KeyEntry as KeyEntry,
    KeyPath as KeyPath,
    Partial as Partial,
    register_dataclass as register_dataclass,
    register_pytree_node as register_pytree_node,
    register_pytree_node_class as register_pytree_node_class,
    register_pytree_with_keys as register_pytree_with_keys,
    register_pytree_with_keys_class as register_pytree_with_keys_class,
    register_static as register_static,
)

default_registry = minijax.core.tree_registry.registry
tree_all = minijax.core.tree.all_true
tree_broadcast = minijax.core.tree.broadcast
tree_flatten = minijax.core.tree.flatten
tree_flatten_with_path = minijax.core.tree.flatten_with_path
tree_leaves = minijax.core.tree.leaves
tree_leaves_with_path = minijax.core.tree.leaves_with_path
tree_map = minijax.core.tree.map
tree_map_with_path = minijax.core.tree.map_with_path
tree_reduce = minijax.core.tree.reduce
tree_reduce_associative = minijax.core.tree.reduce_associative
tree_structure = minijax.core.tree.structure
tree_transpose = minijax.core.tree.transpose
tree_unflatten = minijax.core.tree.unflatten

deferral.publish(globals())
