"""Tokens: values without content that put side effects in order."""

from __future__ import annotations

from typing import Any

from minijax.core.aval import AbstractToken, abstract_token
from minijax.core.errors import error
from minijax.core.primitive import Primitive
from minijax.sharding import rules


class CreateToken(Primitive):
    """A new token.  It has no derivative, and is the same for all examples of a batch."""

    name = "create_token"
    knows_extended = True
    without = frozenset({"jvp", "batch"})
    shard = rules.from_types

    def abstract_eval(self) -> AbstractToken:
        return abstract_token

    def lower(self, ctx: Any) -> Any:
        return ctx.op("stablehlo.create_token", [])


class AfterAll(Primitive):
    """A token that comes after all its operands.  Tokens have neither derivative nor batch."""

    name = "after_all"
    knows_extended = True
    without = frozenset({"jvp", "batch"})
    shard = rules.from_types

    def abstract_eval(self, *tokens: Any) -> AbstractToken:
        for token in tokens:
            if not isinstance(token, AbstractToken):
                error(TypeError, "lax.after_all", "operands must be tokens.", got=str(token))
        return abstract_token

    def lower(self, ctx: Any, *tokens: Any) -> Any:
        return ctx.op("stablehlo.after_all", tokens)


create_token_p = CreateToken()
after_all_p = AfterAll()


def create_token(_: Any = None) -> Any:
    """A new token.

    Source:     mirrors jax.lax.create_token (0.10).

    Example:
        >>> jax.typeof(lax.create_token())
        Token()
    """
    return create_token_p.bind()


def after_all(*operands: Any) -> Any:
    """A token that comes after all of `operands`.

    Source:     mirrors jax.lax.after_all (0.10).

    Raises:
        TypeError: an operand is no token.

    Example:
        >>> jax.make_jaxpr(lambda: lax.after_all(lax.create_token(), lax.create_token()))()
        { lambda ; . let
            a:Tok = create_token
            b:Tok = create_token
            c:Tok = after_all a b
          in (c,) }
    """
    return after_all_p.bind(*operands)
