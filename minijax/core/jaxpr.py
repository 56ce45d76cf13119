"""Jaxprs: the typed intermediate language that every step reads and writes.

A jaxpr is a list of equations `outvars = primitive[params] invars` in order of evaluation.
Jaxprs are immutable: passes build new ones.  Names are given to variables only when printed
(`core/printing.py`), types are checked by `core/check.py`.

`docs/reading.md`: read after `core/aval.py`; `core/trace.py` is next.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from minijax.core import config, deferral, monitoring
from minijax.core.aval import AbstractValue, aval_of
from minijax.core.operators import Value, Values

if TYPE_CHECKING:
    from minijax.core.effects import Effect
    from minijax.core.native import Traceback
    from minijax.core.primitive import Primitive

if TYPE_CHECKING:
    from minijax.core import printing
else:
    printing = deferral.module("minijax.core.printing")

T = TypeVar("T")
Effects: TypeAlias = frozenset["Effect"]
NO_EFFECTS: Effects = frozenset()


class Var:
    """A variable: bound once, by an equation or as a parameter of a jaxpr.

    Example:
        >>> jax.make_jaxpr(lambda x, y: x * y)(2, 3.0).jaxpr.invars
        [Var(i32[]), Var(f32[])]
    """

    __slots__ = ("aval",)

    aval: AbstractValue

    def __init__(self, aval: AbstractValue) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var({self.aval.str_short()})"


class Literal:
    """A scalar constant written into an equation.

    Example:
        >>> eqn = jax.make_jaxpr(lambda x: x + 2)(1).eqns[0]
        >>> eqn.invars, eqn.invars[1].val
        ([Var(i32[]), Literal(2)], 2)
    """

    __slots__ = ("aval", "value")

    aval: AbstractValue
    value: Any

    def __init__(self, value: Value, aval: AbstractValue | None = None) -> None:
        self.value = value
        self.aval = aval_of(value) if aval is None else aval

    @property
    def val(self) -> Any:
        """The value, under JAX's name."""
        return self.value

    def __repr__(self) -> str:
        return f"Literal({self.value})"


Atom = Var | Literal


Names = tuple[str, ...] | Callable[[], tuple[str, ...]] | None


class DebugInfo:
    """Where a jaxpr comes from: the function, its argument names and result paths.

    Names may be given as functions, which are called when somebody asks: most never do.

    Example:
        >>> closed = jax.make_jaxpr(lambda params: {"loss": params["w"] ** 2})({"w": 1.0})
        >>> info = closed.jaxpr.debug_info
        >>> info.arg_names, info.result_paths
        (("params['w']",), ("result['loss']",))
    """

    __slots__ = ("_arg_names", "_result_paths", "func_name", "func_src_info", "traced_for")

    def __init__(
        self,
        traced_for: str,
        func_src_info: str,
        arg_names: Names = None,
        result_paths: Names = None,
        func_name: str = "",
    ) -> None:
        self.traced_for = traced_for
        self.func_src_info = func_src_info
        self._arg_names = arg_names
        self._result_paths = result_paths
        self.func_name = func_name or func_src_info.split(" ", maxsplit=1)[0]

    @property
    def arg_names(self) -> tuple[str, ...] | None:
        """A name for each argument leaf, such as `params['w']`."""
        if callable(self._arg_names):
            self._arg_names = self._arg_names()
        return self._arg_names

    @property
    def result_paths(self) -> tuple[str, ...] | None:
        """A path for each result leaf, such as `result['loss']`."""
        if callable(self._result_paths):
            self._result_paths = self._result_paths()
        return self._result_paths

    def set_result_paths(self, paths: Names) -> None:
        """Sets the paths of the results, which are known only after tracing."""
        self._result_paths = paths

    def without_arg_names(self) -> DebugInfo:
        """The same, for a jaxpr that has got other arguments."""
        return DebugInfo(
            self.traced_for, self.func_src_info, None, self._result_paths, self.func_name
        )

    def __repr__(self) -> str:
        return (
            f"DebugInfo(traced_for={self.traced_for!r}, func_src_info={self.func_src_info!r}, "
            f"arg_names={self.arg_names}, result_paths={self.result_paths})"
        )


NO_DEBUG_INFO = DebugInfo("", "")


class Eqn:
    """One equation: `outvars = primitive[params] invars`.

    Example:
        >>> eqn = jax.make_jaxpr(lambda x: lax.rev(x, (0,)))(jnp.arange(3)).eqns[0]
        >>> eqn.primitive, eqn.params, eqn.invars
        (rev, {'dimensions': (0,)}, [Var(i32[3])])
    """

    __slots__ = ("effects", "invars", "outvars", "params", "primitive", "scope", "source")

    def __init__(
        self,
        invars: list[Atom],
        outvars: list[Var],
        primitive: Primitive,
        params: Mapping[str, Any],
        effects: Effects = NO_EFFECTS,
        source: Traceback | None = None,
        scope: tuple[str, ...] = (),
    ) -> None:
        self.invars = invars
        self.outvars = outvars
        self.primitive = primitive
        self.params = params
        self.effects = effects
        self.source = source
        self.scope = scope

    @property
    def source_info(self) -> Traceback | None:
        """The C++ traceback captured where the equation was made."""
        return self.source

    def replace(self, **changes: Any) -> Eqn:
        """This equation with some fields replaced."""
        fields = {name: getattr(self, name) for name in Eqn.__slots__}
        return Eqn(**{**fields, **changes})

    def __repr__(self) -> str:
        return printing.eqn_text(self)


class Jaxpr:
    """A function as equations, open in its `constvars`.

    Source:     mirrors jax.extend.core.Jaxpr (0.10).

    Example:
        >>> jaxpr = jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0).jaxpr
        >>> [str(eqn.primitive) for eqn in jaxpr.eqns], jaxpr.invars[0].aval
        (['sin', 'mul'], ShapedArray(float32[], weak_type=True))
    """

    __slots__ = (
        "__weakref__",
        "constvars",
        "debug_info",
        "effects",
        "eqns",
        "has_references",
        "invars",
        "outvars",
    )

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[Eqn],
        effects: Effects | None = None,
        debug_info: DebugInfo = NO_DEBUG_INFO,
    ) -> None:
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        found = join_effects(self.eqns) if effects is None else effects
        if found:
            parameters = {*self.constvars, *self.invars}
            found = frozenset(e for e in found if e.outlives(parameters))
        self.effects = found
        self.debug_info = debug_info
        # Whether it takes or makes references, once somebody has looked.
        self.has_references: bool | None = None

    def replace(self, **changes: Any) -> Jaxpr:
        """This jaxpr with some fields replaced; effects follow the equations."""
        names = ("constvars", "invars", "outvars", "eqns", "debug_info")
        fields = {name: getattr(self, name) for name in names}
        return Jaxpr(**{**fields, **changes})

    def pretty_print(self, **options: Any) -> str:
        """The text of the jaxpr."""
        return printing.jaxpr_text(self, **options)

    def __str__(self) -> str:
        return printing.jaxpr_text(self)

    __repr__ = __str__
    _repr_html_ = deferral.shown


class ClosedJaxpr:
    """A jaxpr with the values of its constants.

    Source:     mirrors jax.extend.core.ClosedJaxpr (0.10).

    Example:
        >>> table = np.arange(1000.0, dtype=np.float32)
        >>> closed = jax.make_jaxpr(lambda i: jnp.asarray(table)[i])(0)
        >>> [c.shape for c in closed.consts]
        [(1000,)]
    """

    __slots__ = ("__weakref__", "cache", "consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Values = ()) -> None:
        self.jaxpr = jaxpr
        self.consts = list(consts)
        # What caches with the owner "jaxpr" keep for this program: transformed jaxprs, plans,
        # modules, executables.  It lives as long as the jaxpr.
        self.cache: dict[Hashable, object] = {}

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` returns, made once for each key and tracing context."""
        return monitoring.transformed.of(self, (key, config.trace_context()), make)

    @property
    def eqns(self) -> list[Eqn]:
        return self.jaxpr.eqns

    @property
    def effects(self) -> Effects:
        return self.jaxpr.effects

    @property
    def in_avals(self) -> list[AbstractValue]:
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[AbstractValue]:
        return [v.aval for v in self.jaxpr.outvars]

    @property
    def literals(self) -> list[Any]:
        """The constants, under JAX's older name."""
        return self.consts

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Values | None = None) -> ClosedJaxpr:
        """This closed jaxpr with another jaxpr or other constants."""
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts
        )

    def pretty_print(self, **options: Any) -> str:
        """The text of the jaxpr."""
        return printing.jaxpr_text(self.jaxpr, **options)

    def __str__(self) -> str:
        return printing.jaxpr_text(self.jaxpr)

    __repr__ = __str__
    _repr_html_ = deferral.shown


def join_effects(eqns: Sequence[Eqn]) -> Effects:
    """All effects of some equations."""
    effects = NO_EFFECTS
    for eqn in eqns:
        if eqn.effects:
            effects |= eqn.effects
    return effects


def holders(jaxpr: Jaxpr) -> list[Eqn]:
    """Returns the equations that may contain jaxprs: a primitive that does has several results."""
    return [eqn for eqn in jaxpr.eqns if eqn.primitive.multiple_results]


def jaxprs_in_params(params: Mapping[str, Any]) -> Iterator[Jaxpr]:
    """Every jaxpr among the parameters of an equation, also inside tuples.

    Example:
        >>> eqn = jax.make_jaxpr(lambda x: lax.cond(x > 0, lambda: 1, lambda: 2))(3).eqns[-1]
        >>> [jaxpr.outvars for jaxpr in jax.extend.core.jaxprs_in_params(eqn.params)]
        [[Literal(2)], [Literal(1)]]
    """
    for value in params.values():
        if isinstance(value, (tuple, list)):
            for item in value:
                if isinstance(item, ClosedJaxpr):
                    yield item.jaxpr
                elif isinstance(item, Jaxpr):
                    yield item
        elif isinstance(value, ClosedJaxpr):
            yield value.jaxpr
        elif isinstance(value, Jaxpr):
            yield value


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Every jaxpr directly inside the equations of `jaxpr`.

    Example:
        >>> outer = jax.make_jaxpr(jax.jit(lambda x: x + 1))(1).jaxpr
        >>> list(jax.extend.core.subjaxprs(outer))
        [{ lambda ; a:i32[]. let b:i32[] = add a 1:i32[] in (b,) }]
    """
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def used_variables(jaxpr: Jaxpr) -> set[Var]:
    """Variables that some equation or result of `jaxpr` reads."""
    used = {v for v in jaxpr.outvars if type(v) is Var}
    for eqn in jaxpr.eqns:
        used.update(v for v in eqn.invars if type(v) is Var)
    return used
