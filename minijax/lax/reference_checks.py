"""What references refuse: values of another type, batched, differentiated or varying further."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from minijax.core import refs, variance
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.core.refs import AbstractRef
from minijax.interpreters import casts
from minijax.lax.reference_indexing import Index


def _refuse_foreign(ref: Any, verb: str, kind: str, fix: str) -> NoReturn:
    error(
        ValueError,
        "ref",
        f"a {kind} value cannot be {verb} a reference from outside.",
        got=str(aval_of(ref)),
        fix=fix,
    )


def refuse_batched(ref: Any, verb: str) -> NoReturn:
    """Refuses to put a batch into a reference that is not batched.

    Raises:
        ValueError: always.
    """
    _refuse_foreign(
        ref,
        verb,
        "vmapped",
        "pass the reference to the mapped function as an argument that is mapped too",
    )


def refuse_differentiated(ref: Any, verb: str) -> NoReturn:
    """Refuses to put a differentiated value into a reference that is not differentiated.

    Raises:
        ValueError: always.
    """
    _refuse_foreign(
        ref,
        verb,
        "differentiated",
        "pass the reference to the differentiated function, with a tangent; or write "
        "lax.stop_gradient(x)",
    )


def check_varies_less(name: str, ref: Any, value: Any, operands: Sequence[Any]) -> None:
    """Refuses to write what varies over mesh axes over which the reference does not.

    Args:
        name: the operation.
        ref: what is written to.
        value: what is written, or a reference to it.
        operands: of the index.

    Raises:
        ValueError: the value varies over more, or the place does.
    """
    held = variance.of(aval_of(ref)).varying
    for what, x in (("value", value), *(("index", i) for i in operands)):
        aval = aval_of(x)
        more = variance.of(aval).varying - held
        if more:
            error(
                ValueError,
                name,
                f"the {what} varies over {casts.axes_text(more)}, and the reference does not.",
                got=f"{what}: {aval}   ref: {aval_of(ref).str_short()}",
                expected="a reference whose value may differ between the same devices",
                fix=f"new_ref({variance.difference(aval_of(ref), aval)}) where it is made",
            )


def check_value(name: str, ref: AbstractRef, value: Any, index: Index) -> None:
    """Refuses a value whose type is not that of the elements at an index.

    Raises:
        ValueError: the shape or the dtype is another one.
    """
    facts = {"value": value, "ref": ref}
    if value.shape != index.shape:
        error(
            ValueError,
            name,
            "the value has another shape than what it is written to.",
            got=facts,
            expected=f"a value of shape {index.shape}; writing does not broadcast",
        )
    if value.dtype != ref.dtype:
        error(
            ValueError,
            name,
            "the value has another dtype than the reference.",
            got=facts,
            expected=f"{ref.dtype}; writing does not convert",
            fix=f"value.astype({getattr(ref.dtype, 'name', ref.dtype)!r})",
        )


def check_reference(name: str, ref: Any) -> AbstractRef:
    """The type of a reference to an array.

    Raises:
        ValueError: `ref` is something else.
    """
    if not refs.is_reference(ref):
        error(
            ValueError,
            name,
            "expected a reference.",
            got=f"{type(ref).__name__}: {ref!r}",
            fix="make one with new_ref(x)",
        )
    aval: AbstractRef = ref.aval
    if aval.kind is not None:
        error(
            ValueError,
            name,
            "a semaphore is no array.",
            got=str(aval),
            fix="semaphore_signal, semaphore_wait and semaphore_read, or a copy's .wait()",
        )
    return aval
