"""The public names of a library and their parameters: what `make parity` compares first.

Input: the name of a library, `minijax` or `jax`.  Output: for each public module its names, each
with its parameters, or None for what is not called; and the same of objects that users hold, such
as arrays and compiled programs, of each of which there is a specimen.

`python benchmarks/api.py jax` prints what `jax_api.json` records, which lets the tests compare
names where there is no JAX.
"""

from __future__ import annotations

import contextlib
import enum
import importlib
import inspect
import json
import sys
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

RECORDED = Path(__file__).with_name("jax_api.json")

# The modules of which nearly every name has to be there.
DEMANDED = (
    "numpy",
    "lax",
    "random",
    "nn",
    "tree_util",
    "scipy.special",
    "scipy.linalg",
    "scipy.stats",
)
MODULES = (
    "",
    "ad_checkpoint",
    "checkpoint_policies",
    "core",
    "custom_batching",
    "custom_derivatives",
    "debug",
    "distributed",
    "dlpack",
    "dtypes",
    "errors",
    "ffi",
    "flatten_util",
    "image",
    "lax",
    "lax.linalg",
    "nn",
    "nn.initializers",
    "numpy",
    "numpy.fft",
    "numpy.linalg",
    "ops",
    "profiler",
    "random",
    "ref",
    "scipy",
    "scipy.cluster.vq",
    "scipy.fft",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.linalg",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.signal",
    "scipy.sparse.linalg",
    "scipy.spatial.transform",
    "scipy.special",
    "scipy.stats",
    *(
        f"scipy.stats.{name}"
        for name in (
            "bernoulli",
            "beta",
            "betabinom",
            "binom",
            "cauchy",
            "chi2",
            "dirichlet",
            "expon",
            "gamma",
            "gennorm",
            "geom",
            "gumbel_l",
            "gumbel_r",
            "laplace",
            "logistic",
            "multinomial",
            "multivariate_normal",
            "nbinom",
            "norm",
            "pareto",
            "poisson",
            "t",
            "truncnorm",
            "uniform",
            "vonmises",
            "wrapcauchy",
        )
    ),
    "sharding",
    "stages",
    "test_util",
    "tree",
    "tree_util",
    "typing",
    "experimental.checkify",
    "experimental.mesh_utils",
    "experimental.multihost_utils",
    "experimental.serialize_executable",
    "experimental.layout",
    "experimental.ode",
    "experimental.custom_partitioning",
    "memory",
    "example_libraries",
    "example_libraries.optimizers",
    "example_libraries.stax",
    "extend",
    "extend.core",
    "export",
    "monitoring",
    "config",
)
"""Where public names are compared, relative to the library; `config` stands for the settings."""

OBJECTS = {
    "Array": lambda jax, x: x,
    "key": lambda jax, x: jax.random.key(0),
    "at": lambda jax, x: x.at,
    "at[...]": lambda jax, x: x.at[0],
    "Shard": lambda jax, x: x.addressable_shards[0],
    "Device": lambda jax, x: jax.devices()[0],
    "Ref": lambda jax, x: jax.new_ref(x),
    "ShapeDtypeStruct": lambda jax, x: jax.ShapeDtypeStruct((2,), "float32"),
    "typeof": lambda jax, x: jax.typeof(x),
    "jit": lambda jax, x: jax.jit(_identity),
    "Traced": lambda jax, x: jax.jit(_identity).trace(x),
    "Lowered": lambda jax, x: jax.jit(_identity).lower(x),
    "Compiled": lambda jax, x: jax.jit(_identity).lower(x).compile(),
    "ArgInfo": lambda jax, x: jax.jit(_identity).lower(x).args_info[0][0],
    "vjp": lambda jax, x: jax.vjp(_identity, x)[1],
    "linearize": lambda jax, x: jax.linearize(_identity, x)[1],
    "custom_jvp": lambda jax, x: jax.custom_jvp(_identity),
    "custom_vjp": lambda jax, x: jax.custom_vjp(_identity),
    "custom_vmap": lambda jax, x: jax.custom_batching.custom_vmap(_identity),
    "Mesh": lambda jax, x: jax.make_mesh((1,), ("i",)),
    "AbstractMesh": lambda jax, x: jax.sharding.AbstractMesh((2,), ("i",)),
    "PartitionSpec": lambda jax, x: jax.P("i"),
    "NamedSharding": lambda jax, x: jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i")),
    "SingleDeviceSharding": lambda jax, x: x.sharding,
    "PyTreeDef": lambda jax, x: jax.tree.structure([1]),
    "Partial": lambda jax, x: jax.tree_util.Partial(_identity),
    "ClosedJaxpr": lambda jax, x: jax.make_jaxpr(_identity)(x),
    "Jaxpr": lambda jax, x: jax.make_jaxpr(_identity)(x).jaxpr,
    "JaxprEqn": lambda jax, x: jax.make_jaxpr(lambda y: y + y)(x).jaxpr.eqns[0],
    "ufunc": lambda jax, x: jax.numpy.add,
    "config": lambda jax, x: jax.config,
}
"""What users hold, made by a library from an array; their names are recorded under "(…)"."""

# What classes have for Python and for pickling, and what says nothing about their values.
_OF_CLASSES = frozenset(
    (
        "__abstractmethods__",
        "__annotations__",
        "__dataclass_fields__",
        "__dataclass_params__",
        "__dict__",
        "__firstlineno__",
        "__getstate__",
        "__match_args__",
        "__module__",
        "__orig_bases__",
        "__parameters__",
        "__protocol_attrs__",
        "__slots__",
        "__slotnames__",
        "__static_attributes__",
        "__type_params__",
        "__weakref__",
        "__wrapped__",
        "__class_getitem__",
        "__deepcopy__",
        "__del__",
        "__getattr__",
        "__getnewargs_ex__",
        "__setstate__",
        "__vectorcalloffset__",
    )
)

Names = dict[str, str | None]


class Module(NamedTuple):
    """How the public names of a module compare.

    Attributes:
        path: the module, relative to the library.
        expected: how many names JAX has there.
        missing: those that are not here.
        narrower: names that do not take all the arguments that JAX's take: both parameter lists.
    """

    path: str
    expected: int
    missing: list[str]
    narrower: dict[str, tuple[str | None, str | None]]

    @property
    def share(self) -> float:
        """The share of the names that are here."""
        return 1 - len(self.missing) / self.expected if self.expected else 1.0


class Reasons(NamedTuple):
    """Why names are missing, or take less: the tables of `parity_differences.toml`."""

    texts: dict[str, str]
    missing: dict[str, str]
    parameters: dict[str, str]

    def of(self, path: str, name: str, aspect: str) -> str | None:
        """The reason for one name of a module; a whole module may have one."""
        table = self.missing if aspect == "missing" else self.parameters
        full = f"{path}.{name}".lstrip(".")
        key = table.get(full) or table.get(f"{path}.*")
        return None if key is None else self.texts[key]


def reasons_for_names() -> Reasons:
    """The recorded reasons."""
    path = Path(__file__).with_name("parity_differences.toml")
    known = tomllib.loads(path.read_text(encoding="utf-8"))
    return Reasons(known["reasons"], known["missing"], known["parameters"])


def outdated(reasons: Reasons, modules: list[Module]) -> list[str]:
    """Names for which there is a reason and no difference."""
    missing = {f"{module.path}.{name}".lstrip(".") for module in modules for name in module.missing}
    narrower = {
        f"{module.path}.{name}".lstrip(".") for module in modules for name in module.narrower
    }
    wholes = {f"{module.path}.*" for module in modules if module.missing}
    return sorted(
        [f"missing: {name}" for name in reasons.missing if name not in missing | wholes]
        + [f"parameters: {name}" for name in reasons.parameters if name not in narrower]
    )


def public_names(library: str, paths: tuple[str, ...] = MODULES) -> dict[str, Names]:
    """The public names of modules and objects, with parameters; a missing module has none."""
    names = {
        path: _settings(library) if path == "config" else dict(_names(library, path))
        for path in paths
    }
    return names | _names_of_objects(library)


def _settings(library: str) -> Names:
    """The settings by name without prefix; of each the default, as the one of a parameter."""
    config = importlib.import_module(library).config
    values = config.values
    if hasattr(config, "state"):
        # JAX tells no defaults; where it is asked, nobody has set anything.
        values = {name: config.state(name).default for name in values}
    return {
        name.removeprefix("jax_"): f"(value={_plain_value(value)!r})"
        for name, value in values.items()
    }


def _plain_value(value: Any) -> Any:
    return value.name.lower() if isinstance(value, enum.Enum) else value


def _names_of_objects(library: str) -> dict[str, Names]:
    jax = importlib.import_module(library)
    importlib.import_module(f"{library}.custom_batching")
    x = importlib.import_module(f"{library}.numpy").ones(2)
    found = {f"({name})": dict(_members(make(jax, x))) for name, make in OBJECTS.items()}
    # A tracer lives in its trace.
    jax.make_jaxpr(lambda y: found.update({"(Tracer)": dict(_members(y))}) or y)(x)
    return found


def _members(value: Any) -> Iterator[tuple[str, str | None]]:
    """The names that a value answers to, with the parameters of methods; flags are settings."""
    for name in dir(value):
        is_special = name.startswith("__") and name.endswith("__") and not hasattr(object, name)
        if name.startswith("jax_") or name in _OF_CLASSES:
            continue
        if is_special or not name.startswith("_"):
            try:
                with warnings.catch_warnings(action="ignore"):
                    member = getattr(value, name)
            except (AttributeError, TypeError, ValueError, NotImplementedError):
                continue  # Some values have no such property.
            is_method = inspect.isroutine(member) or inspect.ismethodwrapper(member)
            special = is_special or not is_method
            yield name, None if special else parameters_of(member)
    with contextlib.suppress(TypeError):
        memoryview(value)
        yield "memoryview(...)", None


def _identity(x: Any) -> Any:
    return x


def compared(ours: dict[str, Names], theirs: dict[str, Names]) -> list[Module]:
    """For each module in which JAX has names, what is missing and what takes less."""
    modules = []
    for path, expected in theirs.items():
        present = ours[path]
        missing = sorted(expected.keys() - present.keys())
        narrower = {
            name: (present[name], parameters)
            for name, parameters in sorted(expected.items())
            if name in present and not _takes(present[name], parameters)
        }
        if expected:
            modules.append(Module(path, len(expected), missing, narrower))
    return modules


def _names(library: str, path: str) -> Iterator[tuple[str, str | None]]:
    try:
        module = importlib.import_module(f"{library}.{path}" if path else library)
    except ImportError:
        return
    for name in sorted(dir(module)):
        if name.startswith("_"):
            continue
        value = _value(module, name)
        if value is not None and not _comes_from_elsewhere(module, name, value):
            yield name, parameters_of(value)


def _value(module: ModuleType, name: str) -> Any:
    """What a name stands for; None where asking for it raises, as it does for retired names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return getattr(module, name)
        except (AttributeError, ImportError):
            return None


def _comes_from_elsewhere(module: ModuleType, name: str, value: Any) -> bool:
    """Whether a module only imports a name for its own use."""
    if inspect.ismodule(value):
        is_own = value.__name__ == f"{module.__name__}.{name}"
        return not is_own and name not in getattr(module, "__all__", ())
    home = getattr(value, "__module__", None) or module.__name__
    is_of_python = home in ("typing", "collections.abc", "functools", "__future__")
    return is_of_python and not module.__name__.endswith(".typing")


def parameters_of(value: Any) -> str | None:
    """The parameters of a function without types, as one line for each; None if it tells none.

    Only whether there is a default counts: objects that are defaults print differently anywhere.
    """
    if not callable(value) or inspect.isclass(value):
        return None
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    return str(inspect.Signature([_plain(parameter) for parameter in parameters]))


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    default = parameter.default
    if default is not parameter.empty and not isinstance(default, int | float | str | None | tuple):
        default = ...
    return parameter.replace(annotation=parameter.empty, default=default)


def _takes(ours: str | None, theirs: str | None) -> bool:
    """Whether parameters take all calls that others take: more optional ones may follow.

    What begins with an underscore is nobody's business.  A function that takes anything tells
    nothing, and one that takes any positions, or any names, tells nothing about these.
    """
    if ours is None or theirs is None or ours == theirs:
        return True
    mine = _parsed(ours)
    other = [p for p in _parsed(theirs) if not p.name.startswith("_")]
    if _takes_anything(mine) or _takes_anything(other):
        return True
    if any(p.kind is p.VAR_KEYWORD for p in mine):
        other = [p for p in other if p.kind < p.KEYWORD_ONLY]
    by_name = {p.name: p for p in mine}
    positional = [p for p in mine if p.kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD]
    other_positional = [p for p in other if p.kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if any(p.kind is p.VAR_POSITIONAL for p in other):
        other = [p for p in other if p.kind is not p.VAR_POSITIONAL]
    else:
        names = {p.name for p in other}
        unfilled = mine[len(other_positional) :]
        if any(_is_needed(p) and p.name not in names for p in unfilled):
            return False
    return _by_place(positional, other_positional) and all(
        _serves(by_name.get(p.name), p) or p.kind is p.POSITIONAL_ONLY for p in other
    )


def _takes_anything(parameters: list[inspect.Parameter]) -> bool:
    kinds = {p.kind for p in parameters}
    return {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds


def _is_needed(parameter: inspect.Parameter) -> bool:
    is_one = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return is_one and parameter.default is parameter.empty


def _serves(ours: inspect.Parameter | None, theirs: inspect.Parameter) -> bool:
    """Whether a parameter takes what one of the same name takes."""
    if ours is None or ours.kind > theirs.kind:
        return False
    return theirs.default in (theirs.empty, ours.default)


def _by_place(ours: list[inspect.Parameter], theirs: list[inspect.Parameter]) -> bool:
    """Whether positions mean the same; names count where they can be used."""
    if len(ours) < len(theirs):
        return False
    return all(
        other.kind is other.POSITIONAL_ONLY or (mine.name == other.name and mine.kind == other.kind)
        for mine, other in zip(ours, theirs, strict=False)
    )


def _parsed(text: str) -> list[inspect.Parameter]:
    scope: dict[str, Any] = {"inf": float("inf"), "nan": float("nan")}
    exec(f"def function{text}: pass", scope)
    return list(inspect.signature(scope["function"]).parameters.values())


if __name__ == "__main__":
    json.dump(public_names(sys.argv[1]), sys.stdout, indent=1, sort_keys=True)
