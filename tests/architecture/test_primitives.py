"""Every primitive has its rules, or it is said here which of them make no sense for it."""

import importlib
import pkgutil
from types import MethodType
from typing import Any

from minijax.core.primitive import PRIMITIVES, Primitive
from minijax.core.rules import TABLES, Rules
from minijax.interpreters.jvp import jvp_of_linear

REQUIRED_RULES = ("abstract_eval", "lower", "jvp", "batch", "shard")


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


WITHOUT = {
    "jvp": names(
        """
        after_all all_gather_done all_gather_reduced_start all_gather_start
        all_to_all_done all_to_all_start cholesky_update core_map create_token empty
        geqp3 geqrf hessenberg householder_product iota ormqr pbroadcast_done
        pbroadcast_start platform_index pmax pmin ppermute_done ppermute_start precv
        psend psum_done psum_invariant_start psum_start reduce_scatter_done
        reduce_scatter_start rng_uniform schur select_and_scatter symmetric_product
        tridiagonal unreduced_psum_start unreduced_reduce_scatter_start
        """
    ),
    "transpose": names("full_to_shard shard_to_full"),
    "batch": names(
        """
        after_all all_gather_done all_gather_reduced_start all_gather_start
        all_to_all_done all_to_all_start core_map create_token empty iota
        pbroadcast_done pbroadcast_start platform_index ppermute_done ppermute_start
        precv psend psum_done psum_invariant_start psum_start reduce_scatter_done
        reduce_scatter_start rng_uniform unreduced_psum_start
        unreduced_reduce_scatter_start
        """
    ),
    "lower": names(
        """
        addupdate dma_start dma_wait freeze get new_ref semaphore_signal semaphore_wait
        swap
        """
    ),
}
"""For each rule the primitives for which it makes no sense; their docstrings say why.

Only a primitive whose rule `jvp` is `jvp_of_linear` needs a rule `transpose`, or an entry here.
"""

HOLDERS = ("check_inside", "dce", "differ", "division", "walk", "with_references")
"""What analyses ask operations that hold jaxprs, or functions."""

_FUNCTIONS = names("custom_jvp_call custom_vjp_call custom_vmap_call")
_SOLVERS = names("custom_linear_solve custom_root")
_CHECKS = names("check report")

UNCOVERED = {
    # Casts are the same for every device of a batch, and what starts is never batched.
    "batch_axis": names(
        """
        all_gather_reduced_start all_gather_start all_to_all_start pbroadcast_start ppermute_start
        precv preduced psend psum_invariant psum_invariant_start psum_start pvary
        reduce_scatter_start reduced_vary_cast unreduced_psum unreduced_psum_start
        unreduced_reduce_scatter_start vary_unreduced_cast
        """
    ),
    "check_inside": names("core_map linear_call"),
    "dce": names("core_map linear_call") | _CHECKS | _FUNCTIONS | _SOLVERS,
    "discharge": frozenset(),
    "division": names("core_map linear_call remat2 vmap while") | _CHECKS | _FUNCTIONS | _SOLVERS,
    "vary": frozenset(),
    "walk": names("core_map pmap vmap") | _CHECKS | _SOLVERS,
    "with_references": names("linear_call pmap vmap") | _CHECKS | _FUNCTIONS | _SOLVERS,
}
"""For each table of rules the operations in question that have none there."""


def own_primitives() -> dict[str, Primitive]:
    """The package's primitives, without those that other tests declare as users do."""
    rooms = ("experimental", "interpreters", "lax", "random", "transforms")
    for room in rooms:
        package = importlib.import_module(f"minijax.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    return {
        name: primitive
        for name, primitive in PRIMITIVES.items()
        if type(primitive).__module__.startswith(
            ("minijax.core.", *(f"minijax.{r}." for r in rooms))
        )
    }


def without(primitive: Primitive) -> set[str]:
    return {rule for rule, names in WITHOUT.items() if primitive.name in names}


def rule_of(primitive: type[Primitive], rule: str) -> Any:
    return getattr(primitive, rule)


def has_rule(primitive: Primitive, rule: str) -> bool:
    return rule_of(type(primitive), rule) is not rule_of(Primitive, rule)


def needed_rules(primitive: Primitive) -> set[str]:
    """The rules that the primitive owes: a linear one can be transposed."""
    is_linear = rule_of(type(primitive), "jvp") is jvp_of_linear
    needed = {*REQUIRED_RULES, "transpose"} if is_linear else set(REQUIRED_RULES)
    return needed - without(primitive)


def test_primitives_are_declared() -> None:
    assert {"add", "mul", "sin", "dot_general", "reduce_sum", "jit"} <= set(own_primitives())


def test_primitives_have_their_rules() -> None:
    gaps = {
        name: missing
        for name, primitive in own_primitives().items()
        if (missing := [r for r in sorted(needed_rules(primitive)) if not has_rule(primitive, r)])
    }
    assert gaps == {}


def test_primitives_define_no_rule_that_they_do_without() -> None:
    contradictions = [
        (name, rule)
        for name, primitive in own_primitives().items()
        for rule in sorted(without(primitive))
        if has_rule(primitive, rule)
    ]
    assert contradictions == []


def test_primitives_explain_what_they_do_without() -> None:
    unexplained = [
        name
        for name, primitive in own_primitives().items()
        if without(primitive) and not type(primitive).__doc__
    ]
    assert unexplained == []


def test_at_most_one_family_stands_above_a_primitive() -> None:
    deep = {
        name: len(families)
        for name, primitive in own_primitives().items()
        if len(families := [c for c in type(primitive).__mro__[1:] if issubclass(c, Primitive)]) > 2
    }
    assert deep == {}


def test_without_names_primitives() -> None:
    unknown = {rule: named - set(own_primitives()) for rule, named in WITHOUT.items()}
    assert unknown == {rule: set() for rule in WITHOUT}


def covered(table: str) -> set[str]:
    """The primitives for which a table has something."""
    rules = TABLES[table]
    return {n for n, p in own_primitives().items() if rules.of(p) != rules.default}


def in_question(table: str) -> set[str]:
    """The primitives for which a table should have a rule."""
    if table == "batch_axis":
        return covered("axis_params")
    if table == "vary":
        return covered("communicates") - names("pmap")
    if table == "discharge":
        return covered("with_references") | covered("makes_references")
    found = covered("stage_functions").union(*map(covered, HOLDERS))
    return found | {n for n, p in own_primitives().items() if p.partial_eval is not None}


def test_each_analysis_says_what_it_does_not_cover() -> None:
    gaps = {table: in_question(table) - covered(table) for table in UNCOVERED}
    assert gaps == UNCOVERED


def test_rules_are_functions_that_were_given_their_primitive() -> None:
    tables = [table for table in TABLES.values() if isinstance(table, Rules)]
    rules = [rule for t in tables for p in own_primitives().values() if (rule := t.of(p))]
    assert len(rules) > 150
    assert all(type(rule) is MethodType for rule in rules)
