"""Functions with transformations around them, as `jax.extend.linear_util` has them.

Input: a function, and generators or functions that work on its arguments and results.  Output: a
`WrappedFun`, whose `call_wrapped` does it all.  `jax.api_util` flattens arguments and results so.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minijax.core import source, tree
from minijax.core.errors import error
from minijax.core.jaxpr import DebugInfo
from minijax.core.native import PyTreeDef

Function = Callable[..., Any]
Values = Sequence[object]


class Store:
    """What a transformation leaves for later, such as the tree of the results."""

    def __init__(self) -> None:
        self._value: tuple[object, ...] = ()

    def store(self, value: object) -> None:
        """Keeps a value, the last one in place of others."""
        self._value = (value,)

    def __call__(self) -> Any:
        if not self._value:
            error(ValueError, "extend.linear_util", "the function has not been called yet.")
        return self._value[0]


class WrappedFun:
    """A function, and what is done to its arguments and results.

    Attributes:
        f: the function of the user.
        call_wrapped: it, with all transformations around it.
        debug_info: where it comes from.
    """

    def __init__(self, f: Function, call: Function, debug_info: DebugInfo | None) -> None:
        self.f = f
        self.call_wrapped = call
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed function>")

    def around(self, call: Function) -> WrappedFun:
        """The same function with one more transformation around it."""
        return WrappedFun(self.f, call, self.debug_info)

    def __repr__(self) -> str:
        return f"WrappedFun({self.__name__})"


def wrap_init(
    f: Function, params: dict[str, object] | None = None, *, debug_info: DebugInfo | None = None
) -> WrappedFun:
    """A function without transformations yet; `params` are keywords of all its calls."""
    return WrappedFun(f, functools.partial(f, **params) if params else f, debug_info)


def transformation(gen: Function) -> Function:
    """Decorator: a generator takes arguments, yields what the function gets, and then results.

    What it decorates takes a `WrappedFun` and the generator's first arguments, and returns a
    `WrappedFun`.
    """

    def transform(fun: WrappedFun, *static: object) -> WrappedFun:
        def call(*args: object, **kwargs: object) -> object:
            running = gen(*static, *args, **kwargs)
            inner, keywords = next(running)
            return running.send(fun.call_wrapped(*inner, **keywords))

        return fun.around(call)

    return transform


def transformation_with_aux(gen: Function) -> Function:
    """As `transformation`; the generator yields results with a value, which is asked for later."""

    def transform(fun: WrappedFun, *static: object) -> tuple[WrappedFun, Store]:
        store = Store()

        def call(*args: object, **kwargs: object) -> object:
            running = gen(*static, *args, **kwargs)
            inner, keywords = next(running)
            out, aux = running.send(fun.call_wrapped(*inner, **keywords))
            store.store(aux)
            return out

        return fun.around(call), store

    return transform


def transformation2(gen: Function) -> Function:
    """Decorator: a function takes the one that it wraps, and then the arguments."""

    def transform(fun: WrappedFun, *static: object) -> WrappedFun:
        return fun.around(functools.partial(gen, fun.call_wrapped, *static))

    return transform


def transformation_with_aux2(gen: Function) -> Function:
    """As `transformation2`; the function takes a `Store` too."""

    def transform(fun: WrappedFun, *static: object) -> tuple[WrappedFun, Store]:
        store = Store()
        return fun.around(functools.partial(gen, fun.call_wrapped, store, *static)), store

    return transform


@transformation_with_aux2
def flatten_fun(
    call: Function, store: Store, in_tree: PyTreeDef, *leaves: object
) -> Iterable[object]:
    """A function of leaves that returns leaves; `in_tree` is the tree of (args, kwargs)."""
    args, kwargs = tree.unflatten(in_tree, leaves)
    return _flat(call(*args, **kwargs), store)


@transformation_with_aux2
def flatten_fun_nokwargs(
    call: Function, store: Store, in_tree: PyTreeDef, *leaves: object
) -> Iterable[object]:
    """A function of leaves that returns leaves; `in_tree` is the tree of its arguments."""
    return _flat(call(*tree.unflatten(in_tree, leaves)), store)


def _flat(result: object, store: Store) -> list[object]:
    leaves, treedef = tree.flatten(result)
    store.store(treedef)
    return leaves


def debug_info(
    traced_for: str, fun: Function, args: Values, kwargs: dict[str, object], **_: object
) -> DebugInfo:
    """Where a jaxpr of a function comes from."""
    inner = source.unwrapped(fun)
    return DebugInfo(traced_for, getattr(inner, "__name__", type(inner).__name__))


def argnums_partial(
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Values,
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple[object, ...]]:
    """A function of some of its arguments, with the others fixed; and those that it takes."""
    numbers = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    places = [number % len(args) for number in numbers]

    def call(*dynamic: object, **kwargs: object) -> object:
        filled = list(args)
        for place, value in zip(places, dynamic, strict=True):
            filled[place] = value
        return f.call_wrapped(*filled, **kwargs)

    return f.around(call), tuple(args[place] for place in places)


def safe_map(f: Function, *sequences: Iterable[object]) -> list[object]:
    """A list of results of `f`; the sequences are of one length.

    Raises:
        ValueError: they are not.
    """
    lists = [list(sequence) for sequence in sequences]
    lengths = [len(values) for values in lists]
    if len(set(lengths)) > 1:
        error(ValueError, "api_util.safe_map", "the sequences differ in length.", got=str(lengths))
    return [f(*values) for values in zip(*lists, strict=True)]
