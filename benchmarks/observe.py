"""What a worker sees of one library: what programs give, and which public names there are.

Jaxprs are reported twice: as printed, with variables renamed in order of appearance; and as plain
lists of equations with nested calls of jit written out, because JAX's NumPy functions are jitted
functions of their own and minijax's are not.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

import parity_programs

_TOKEN = re.compile(
    r"\{(?: lambda)?|\}"
    r"|\b(?P<bound>[a-z]+)(?=:(?:[a-z]+\d*\[|key<))"
    r"|(?<![\w.])[a-z]+\b(?![=\[(.])"
)
"""Of a printed jaxpr: where a scope begins and ends, variables as they are bound, other words."""

_REPEATED = ("update_jaxpr", "update_consts")
"""Parameters that only repeat what the name of their primitive says."""

_CALLS = ("pjit", "jit", "closed_call", "custom_jvp_call")


def observe(jax: Any, names: list[str]) -> dict[str, Any]:
    """What each program gives, or the class of the error that it raises."""
    programs = parity_programs.build(jax)
    return {
        name: _observe_one(jax, *programs[name]) for name in programs if name in (names or programs)
    }


def _observe_one(jax: Any, function: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    args = jax.tree.map(lambda x: jax.device_put(x) if isinstance(x, np.ndarray) else x, args)
    try:
        results, tree = jax.tree.flatten(function(*args))
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)[:300]}
    seen: dict[str, Any] = {
        "tree": str(tree),
        "types": [type_text(jax, each) for each in results],
        "values": [values(jax, each) for each in results],
    }
    try:
        jaxpr = jax.make_jaxpr(function)(*args)
        seen["jaxpr"] = normalised(str(jaxpr))
        seen["equations"] = list(_equations(jaxpr.jaxpr, _names(jaxpr.jaxpr)))
        seen["calls"] = any(eqn.primitive.name in _CALLS for eqn in jaxpr.jaxpr.eqns)
    except Exception as error:
        seen["jaxpr"] = f"{type(error).__name__}: {error}"[:300]
        seen["equations"], seen["calls"] = [], False
    return seen


def type_text(jax: Any, x: Any) -> str:
    """The type of a result: dtype, shape, and whether it is weak."""
    if not hasattr(x, "dtype"):
        return type(x).__name__
    aval = jax.typeof(x)
    weak = " weak" if getattr(aval, "weak_type", False) else ""
    return f"{aval.dtype}[{','.join(map(str, aval.shape))}]{weak}"


def values(jax: Any, x: Any) -> Any:
    """The elements of a result, as a flat list of numbers; those of keys are their words."""
    if hasattr(x, "dtype") and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    array = np.asarray(x)
    if array.dtype == jax.dtypes.float0:
        return []
    if np.iscomplexobj(array):
        return [values(jax, array.real), values(jax, array.imag)]
    return array.astype(float).ravel().tolist()


def normalised(text: str) -> str:
    """The text of a jaxpr, the variables of each scope renamed v0, v1, … as they are bound."""
    scopes: list[dict[str, str]] = [{}]

    def rename(match: re.Match[str]) -> str:
        token = match[0]
        if token.startswith("{"):
            scopes.append({})
        elif token == "}":
            scopes.pop()
        elif match["bound"]:
            return scopes[-1].setdefault(token, f"v{len(scopes[-1])}")
        else:
            return next((scope[token] for scope in reversed(scopes) if token in scope), token)
        return token

    plain = re.sub(r"np\.int\d+\((-?\d+)\)", r"\1", " ".join(text.split()))
    return re.sub(r"0x[0-9a-f]+", "0x", _TOKEN.sub(rename, plain))


class _Names:
    """Names for variables, in the order they are met."""

    def __init__(self, inputs: list[Any]) -> None:
        self.known: dict[Any, str] = {}
        self.count = 0
        for variable in inputs:
            self.bind(variable)

    def bind(self, variable: Any) -> str:
        """A new name for a variable."""
        self.known[variable] = f"v{self.count}"
        self.count += 1
        return self.known[variable]

    def read(self, atom: Any) -> str:
        """The name of a variable, or the value of a literal."""
        if hasattr(atom, "val"):
            return _constant(atom.val, atom.aval)
        return self.known[atom] if atom in self.known else self.bind(atom)


def _names(jaxpr: Any) -> _Names:
    return _Names([*jaxpr.constvars, *jaxpr.invars])


class _Constant(str):
    """A constant as an operand: the weakness of its type shows in what is computed from it."""

    __slots__ = ("value",)

    value: Any


def _constant(value: Any, aval: Any) -> _Constant:
    array = np.asarray(value).astype(aval.dtype)
    constant = _Constant(f"{array.tolist()}:{aval.dtype}")
    constant.value = array
    return constant


def _short(aval: Any) -> str:
    weak = "*" if getattr(aval, "weak_type", False) else ""
    return f"{aval.dtype}[{','.join(map(str, aval.shape))}]{weak}"


def _equations(jaxpr: Any, names: _Names) -> Iterator[str]:
    """One line per equation; calls and conversions of constants are written out.

    Parameters that are None are left out: minijax declares fewer of them.
    """
    for eqn in jaxpr.eqns:
        inputs = [names.read(atom) for atom in eqn.invars]
        body = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
        if eqn.primitive.name == "convert_element_type" and isinstance(inputs[0], _Constant):
            names.known[eqn.outvars[0]] = _constant(inputs[0].value, eqn.outvars[0].aval)
            continue
        if eqn.primitive.name in _CALLS:
            yield from _written_out(eqn, getattr(body, "jaxpr", body), inputs, names)
            continue
        params = ", ".join(
            f"{key}={_param(value)}"
            for key, value in sorted(eqn.params.items())
            if value is not None and key not in _REPEATED
        )
        types = " ".join(_short(each.aval) for each in eqn.outvars)
        outputs = " ".join(names.bind(each) for each in eqn.outvars)
        yield f"{outputs}:{types} = {eqn.primitive.name}[{params}] {' '.join(inputs)}"


def _written_out(eqn: Any, body: Any, inputs: list[str], names: _Names) -> Iterator[str]:
    names.known.update(zip(body.invars, inputs, strict=True))
    for constant in body.constvars:
        names.bind(constant)
    yield from _equations(body, names)
    results = [names.read(atom) for atom in body.outvars]
    names.known.update(zip(eqn.outvars, results, strict=True))


def _param(value: Any) -> str:
    """A parameter as text: nested jaxprs by their equations, functions only as such."""
    nested = getattr(value, "jaxpr", value)
    if hasattr(nested, "eqns"):
        return "{" + "; ".join(_equations(nested, _names(nested))) + "}"
    if isinstance(getattr(value, "tag", None), str):
        return str(value.name)
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_param, value))})"
    if inspect.isfunction(value):
        return "function"
    return re.sub(r"0x[0-9a-f]+", "0x", str(value))
