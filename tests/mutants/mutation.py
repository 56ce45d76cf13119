"""A planted fault: a change of one place in the text of a rule, which can be undone."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from types import FunctionType
from typing import Any, NamedTuple

import minijax as jax


class Mutation(NamedTuple):
    """A rule, a text in it that occurs once, and what is put in its place.

    Attributes:
        target: the rule: `module:Class.method` or `module:function`, below `minijax`.
        old: the text.
        new: the fault.
        steps: the steps of generated programs that use the rule; none for all of them.
    """

    target: str
    old: str
    new: str
    steps: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What tells the mutation from others."""
        return f"{self.target}: {self.old} -> {self.new or 'nothing'}"

    def function(self) -> FunctionType:
        """The rule."""
        module, _, path = self.target.partition(":")
        found: Any = importlib.import_module(f"minijax.{module}")
        for part in path.split("."):
            found = inspect.getattr_static(found, part)
        if isinstance(found, property):
            found = found.fget
        found = inspect.unwrap(found)
        assert isinstance(found, FunctionType)
        return found

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Context manager: inside it, the rule has the fault."""
        function = self.function()
        own = function.__code__
        function.__code__ = self._faulty(function)
        jax.clear_caches()
        try:
            yield
        finally:
            function.__code__ = own
            jax.clear_caches()

    def _faulty(self, function: FunctionType) -> Any:
        source = textwrap.dedent(inspect.getsource(function))
        assert source.count(self.old) == 1, (self.target, self.old, source)
        text = source.replace(self.old, self.new)
        # Decorators would declare the faulty function as a rule, and keep it.
        while text.startswith("@"):
            text = text.partition("\n")[2]
        namespace = dict(function.__globals__)
        exec(compile(text, f"<{self.target}, with a fault>", "exec", _annotations()), namespace)
        found = namespace[function.__name__]
        assert found.__code__.co_freevars == function.__code__.co_freevars
        return found.__code__


def _annotations() -> int:
    """Annotations stay text, as in the modules."""
    return annotations.compiler_flag
