"""Operations on trees of values, under the names of jax.tree."""

import minijax.core.tree
from minijax.core import deferral
from minijax.core.tree import (
    broadcast as broadcast,
    flatten as flatten,
    flatten_with_path as flatten_with_path,
    leaves as leaves,
    leaves_with_path as leaves_with_path,
    map as map,
    map_with_path as map_with_path,
    reduce as reduce,
    reduce_associative as reduce_associative,
    structure as structure,
    transpose as transpose,
    unflatten as unflatten,
)
from minijax.core.tree_registry import static as static

all = minijax.core.tree.all_true

deferral.publish(globals())
