"""`checkpoint`: derivatives stay what they are, and store what the policy says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import ad_checkpoint, lax
from minijax import checkpoint_policies as policies
from minijax import numpy as jnp
from minijax.ad_checkpoint import Offloadable, Recompute, Saveable, checkpoint_name
from minijax.core.jaxpr import Jaxpr, subjaxprs

MATRIX = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
STEPS = np.linspace(-1, 1, 36, dtype=np.float32).reshape(4, 3, 3)


def sin_sin(x: Any) -> Any:
    return jnp.sin(jnp.sin(x)).sum()


def two_layers(w: Any, x: Any) -> Any:
    return jnp.sin(jnp.sin(x @ w) @ w).sum()


def jitted_layers(w: Any, x: Any) -> Any:
    return minijax.jit(lambda w, x: jnp.sin(jnp.sin(x @ w) @ w))(w, jnp.sin(x)).sum()


def recurrent(c: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (jnp.sin(c @ x) + c * x, jnp.cos(c) @ x), c, xs)[1].sum()


def recurrent_state(c: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (jnp.sin(c @ x), jnp.cos(c)), c, xs)[0].sum()


def branching(x: Any) -> Any:
    return lax.cond(
        x.sum() > 3.0, lambda x: jnp.sin(x @ x), lambda x: jnp.cos(x) @ x, jnp.sin(x)
    ).sum()


def looping(x: Any) -> Any:
    start = (0, lax.stop_gradient(x))
    product = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] @ c[1]), start)[1]
    return (jnp.sin(product) * x).sum()


def named(x: Any) -> Any:
    return jnp.sin(checkpoint_name(jnp.sin(checkpoint_name(jnp.sin(x), "a")), "b")).sum()


def scan_of_checkpoint(c: Any, xs: Any) -> Any:
    layer = minijax.checkpoint(lambda c, x: jnp.sin(jnp.sin(c) @ x))
    return lax.scan(lambda c, x: (layer(c, x), None), c, xs)[0].sum()


def nested(x: Any) -> Any:
    inner = minijax.checkpoint(lambda y: jnp.sin(jnp.sin(y @ y)))
    return jnp.sin(inner(jnp.sin(x))).sum()


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sin_sin": (sin_sin, (MATRIX,)),
    "two_layers": (two_layers, (MATRIX, MATRIX)),
    "jitted_layers": (jitted_layers, (MATRIX, MATRIX)),
    "recurrent": (recurrent, (MATRIX, STEPS)),
    "recurrent_state": (recurrent_state, (MATRIX, STEPS)),
    "branching": (branching, (MATRIX,)),
    "looping": (looping, (MATRIX,)),
    "named": (named, (MATRIX,)),
    "scan_of_checkpoint": (scan_of_checkpoint, (MATRIX, STEPS)),
    "nested": (nested, (MATRIX,)),
}

POLICIES: dict[str, Any] = {
    "none": None,
    "nothing": policies.nothing_saveable,
    "everything": policies.everything_saveable,
    "dots": policies.dots_saveable,
    "plain dots": policies.dots_with_no_batch_dims_saveable,
    "a": policies.save_only_these_names("a"),
    "named but a": policies.save_any_names_but_these("a"),
    "anything but a": policies.save_anything_except_these_names("a"),
    "offload b": policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["a"],
        names_which_can_be_offloaded=["b"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
    "offload dots": policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
}


def gradient(f: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    grad: Callable[..., Any] = minijax.grad(f, tuple(range(len(args))))
    return grad


def all_eqns(jaxpr: Jaxpr) -> Iterator[Any]:
    yield from jaxpr.eqns
    for inner in subjaxprs(jaxpr):
        yield from all_eqns(inner)


def count(f: Callable[..., Any], args: tuple[Any, ...], *primitives: str) -> tuple[int, ...]:
    names = [eqn.primitive.name for eqn in all_eqns(minijax.make_jaxpr(f)(*args).jaxpr)]
    return tuple(names.count(name) for name in primitives)


def assert_same(actual: Any, expected: Any) -> None:
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.feature("PE-02", "PE-03")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_checkpoint_keeps_gradients(program: str, policy: str) -> None:
    f, args = PROGRAMS[program]
    checkpointed = minijax.checkpoint(f, policy=POLICIES[policy])
    expected = gradient(f, args)(*args)
    assert_same(gradient(checkpointed, args)(*args), expected)
    assert_same(minijax.jit(gradient(checkpointed, args))(*args), expected)


@pytest.mark.slow
@pytest.mark.feature("PE-03")
@pytest.mark.parametrize("policy", ["none", "dots", "everything"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_checkpoint_keeps_second_derivatives(program: str, policy: str) -> None:
    f, args = PROGRAMS[program]

    def of_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
        return minijax.jit(
            gradient(lambda *xs: sum(jnp.sin(g).sum() for g in gradient(f, args)(*xs)), args)
        )

    checkpointed = minijax.checkpoint(f, policy=POLICIES[policy])
    assert_same(of_gradient(checkpointed)(*args), of_gradient(f)(*args))


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_checkpoint_keeps_batched_gradients(program: str) -> None:
    f, args = PROGRAMS[program]
    batches = [np.stack([x, 2 * x]) for x in args]
    checkpointed = minijax.checkpoint(f, policy=policies.dots_saveable)
    actual = minijax.vmap(gradient(checkpointed, args))(*batches)
    rows = [gradient(f, args)(*(b[i] for b in batches)) for i in range(2)]
    assert_same(actual, [np.stack(pair) for pair in zip(*rows, strict=True)])


# Equations in the gradient as JAX 0.10.2 has them: sin, cos, dot_general, scan.
@pytest.mark.feature("PE-03")
@pytest.mark.parametrize(
    ("program", "policy", "expected"),
    [
        ("sin_sin", "none", (3, 2, 0, 0)),
        ("sin_sin", "everything", (2, 2, 0, 0)),
        ("two_layers", "none", (3, 2, 8, 0)),
        ("two_layers", "dots", (3, 2, 6, 0)),
        ("jitted_layers", "none", (5, 3, 8, 0)),
        ("jitted_layers", "dots", (5, 3, 6, 0)),
        ("recurrent_state", "nothing", (2, 1, 4, 3)),
        ("recurrent_state", "dots", (2, 1, 3, 3)),
        ("named", "none", (5, 3, 0, 0)),
        ("named", "a", (4, 3, 0, 0)),
        ("named", "named but a", (4, 3, 0, 0)),
        ("recurrent", "nothing", (3, 3, 7, 3)),
        ("recurrent", "dots", (3, 3, 6, 3)),
        ("recurrent", "everything", (2, 2, 6, 3)),
        ("looping", "nothing", (2, 0, 2, 0)),
        ("looping", "everything", (1, 0, 1, 0)),
    ],
)
def test_checkpoint_computes_as_much_again_as_jax(
    program: str, policy: str, expected: tuple[int, ...]
) -> None:
    f, args = PROGRAMS[program]
    grad = gradient(minijax.checkpoint(f, policy=POLICIES[policy]), args)
    assert count(grad, args, "sin", "cos", "dot_general", "scan") == expected


def test_checkpoint_is_one_equation() -> None:
    text = str(minijax.make_jaxpr(minijax.checkpoint(sin_sin))(MATRIX))
    assert "remat2[" in text
    assert "differentiated=False" in text


@pytest.mark.feature("PE-02")
def test_checkpoint_stages_the_function_once() -> None:
    calls = []

    @minijax.checkpoint
    def layer(x: Any) -> Any:
        calls.append(x)
        return jnp.sin(x)

    minijax.make_jaxpr(minijax.grad(lambda x: layer(layer(layer(x)))))(1.0)
    assert len(calls) == 1


def test_checkpoint_takes_trees_and_keywords() -> None:
    f = minijax.checkpoint(lambda p, *, scale: {"out": jnp.sin(p["w"] * scale)})
    grad = minijax.grad(lambda p, s: f(p, scale=s)["out"], (0, 1))({"w": 1.0}, 2.0)
    np.testing.assert_allclose([grad[0]["w"], grad[1]], [2 * np.cos(2), np.cos(2)], rtol=1e-6)


def test_checkpoint_differentiates_by_what_it_closes_over() -> None:
    def f(x: Any) -> Any:
        again = minijax.checkpoint(lambda y: jnp.sin(y) * x)
        return again(again(x))

    plain = minijax.grad(lambda x: jnp.sin(jnp.sin(x) * x) * x)(1.0)
    np.testing.assert_allclose(minijax.grad(f)(1.0), plain, rtol=1e-6)


def test_checkpoint_is_differentiated_forwards() -> None:
    out = minijax.jvp(minijax.checkpoint(jnp.sin), (1.0,), (2.0,))
    np.testing.assert_allclose(out, (np.sin(1), 2 * np.cos(1)), rtol=1e-6)


def test_checkpoint_transposes_a_linear_function() -> None:
    (ct,) = minijax.linear_transpose(minijax.checkpoint(lambda x: 3 * x), 1.0)(2.0)
    assert float(ct) == 6.0


def test_checkpoint_passes_random_keys() -> None:
    f = minijax.checkpoint(lambda key, x: x * minijax.random.normal(key))
    key = minijax.random.key(0)
    assert float(minijax.grad(f, 1)(key, 2.0)) == float(minijax.random.normal(key))


def test_checkpoint_of_custom_rules_uses_them() -> None:
    @minijax.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 5.0 * tangents[0]))

    @minijax.custom_vjp
    def g(x: Any) -> Any:
        return jnp.sin(x)

    g.defvjp(lambda x: (g(x), ()), lambda _, ct: (7.0 * ct,))
    assert float(minijax.grad(minijax.checkpoint(lambda x: g(f(x))))(1.0)) == 35.0


def test_checkpoint_repeats_effects_with_what_it_computes_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def f(x: Any) -> Any:
        y = jnp.sin(x)
        minijax.debug.print("printed")
        return jnp.sin(y)

    minijax.grad(minijax.checkpoint(f))(1.0)
    minijax.grad(minijax.checkpoint(f, policy=policies.everything_saveable))(1.0)
    minijax.effects_barrier()
    assert capsys.readouterr().out == "printed\n" * 3


@pytest.mark.feature("PE-03")
def test_checkpoint_guards_its_arguments_from_the_compiler() -> None:
    def barriers(prevent_cse: Any) -> str:
        f = minijax.checkpoint(lambda x, y: jnp.sin(jnp.sin(x) * y), prevent_cse=prevent_cse)
        text = minijax.jit(minijax.grad(f)).lower(1.0, 2.0).as_text()
        return next((line for line in text.splitlines() if "optimization_barrier" in line), "")

    assert barriers(False) == ""
    assert "%arg0, %arg1" in barriers(True)
    assert "%arg0" in barriers((True, False))
    assert "%arg1" not in barriers((True, False))


@pytest.mark.slow
@pytest.mark.feature("PE-02")
def test_checkpoint_lowers_the_peak_of_memory() -> None:
    def peak(layers: int, checkpointed: bool) -> int:
        def layer(x: Any, w: Any) -> tuple[Any, None]:
            return jnp.tanh(jnp.tanh(x @ w) @ w) + x, None

        step = minijax.checkpoint(layer) if checkpointed else layer
        loss = minijax.jit(minijax.grad(lambda ws, x: lax.scan(step, x, ws)[0].sum()))
        compiled = loss.lower(jnp.ones((layers, 64, 64)), jnp.ones((256, 64))).compile()
        return int(compiled.memory_analysis().temp_size_in_bytes)

    activation = 256 * 64 * 4
    assert (peak(16, True) - peak(8, True)) // 8 <= 1.1 * activation
    assert (peak(16, False) - peak(8, False)) // 8 >= 3 * activation


def test_checkpoint_passes_static_arguments_on() -> None:
    def f(x: Any, n: int) -> Any:
        return jnp.sin(x) ** n if n > 1 else x

    expected = 3 * np.sin(1) ** 2 * np.cos(1)
    for options in ({"static_argnums": 1}, {"static_argnums": (-1,)}, {"static_argnames": "n"}):
        grad = minijax.grad(minijax.checkpoint(f, **options))
        np.testing.assert_allclose(grad(1.0, 3), expected, rtol=1e-6)


def test_checkpoint_takes_static_arguments_without_hash() -> None:
    f = minijax.checkpoint(lambda x, ns: x * len(ns), static_argnums=1)
    assert float(f(2.0, [1, 2, 3])) == 6.0


def test_checkpoint_names_a_traced_value_used_as_a_condition() -> None:
    f = minijax.checkpoint(lambda x, n: x if n else -x)
    with pytest.raises(minijax.errors.TracerBoolConversionError, match=r"(?s)bool.*static_argnums"):
        f(1.0, True)


def test_checkpoint_refuses_static_argnums_out_of_range() -> None:
    with pytest.raises(ValueError, match="checkpoint: static_argnums 3 is out of range"):
        minijax.checkpoint(sin_sin, static_argnums=3)
    with pytest.raises(ValueError, match="checkpoint: static_argnums 2 is out of range"):
        minijax.checkpoint(lambda *xs: xs[0], static_argnums=2)(1.0)


def test_checkpoint_refuses_static_argnums_that_are_no_integers() -> None:
    with pytest.raises(TypeError, match=r"(?s)must be integers.*static_argnames"):
        minijax.checkpoint(sin_sin, static_argnums="x")  # type: ignore[arg-type]


def test_checkpoint_refuses_concrete() -> None:
    with pytest.raises(NotImplementedError, match=r"(?s)concrete.*static_argnums"):
        minijax.checkpoint(sin_sin, concrete=True)


def test_checkpoint_refuses_what_cannot_be_called() -> None:
    with pytest.raises(TypeError, match=r"(?s)checkpoint: expected a function.*int: 3"):
        minijax.checkpoint(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"(?s)the policy is not callable.*checkpoint_policies"):
        minijax.checkpoint(sin_sin, policy="dots")  # type: ignore[arg-type]


def test_checkpoint_refuses_prevent_cse_of_another_structure() -> None:
    with pytest.raises(ValueError, match=r"(?s)prevent_cse.*tuple of length 2"):
        minijax.checkpoint(sin_sin, prevent_cse=(True, False))(1.0)


def test_checkpoint_refuses_a_policy_without_decision() -> None:
    f = minijax.checkpoint(sin_sin, policy=lambda *_, **__: None)
    with pytest.raises(TypeError, match=r"(?s)gave no decision.*NoneType.*Offloadable"):
        minijax.grad(f)(1.0)


@pytest.mark.feature("PE-03")
def test_policies_of_users_see_primitives_types_and_parameters() -> None:
    asked = []

    def policy(primitive: Any, *avals: Any, **params: Any) -> Any:
        asked.append((primitive, [aval.shape for aval in avals], sorted(params)))
        return Saveable if primitive is lax.dot_general_p else Recompute

    f = minijax.checkpoint(lambda x: jnp.sin(minijax.jit(lambda x: x @ x)(x)).sum(), policy=policy)
    minijax.grad(f)(MATRIX)
    (dot,) = [entry for entry in asked if entry[0] is lax.dot_general_p]
    assert dot[1] == [(3, 3), (3, 3)]
    assert "dimension_numbers" in dot[2]


def test_policies_of_dots_know_batch_dimensions() -> None:
    batched = {"dimension_numbers": (((2,), (1,)), ((0,), (0,)))}
    assert policies.dots_saveable(lax.dot_general_p, **batched)
    assert not policies.dots_with_no_batch_dims_saveable(lax.dot_general_p, **batched)
    assert policies.dots_saveable(lax.conv_general_dilated_p)
    assert not policies.dots_saveable(lax.sin_p)


def test_policies_with_equal_names_are_equal() -> None:
    assert policies.save_only_these_names("a") == policies.save_only_these_names("a")
    assert policies.save_only_these_names("a") != policies.save_any_names_but_these("a")


def test_save_from_both_policies_saves_what_either_does() -> None:
    both = policies.save_from_both_policies(
        policies.save_only_these_names("a"), policies.save_only_these_names("b")
    )
    shapes = [aval for aval, _ in ad_checkpoint.saved_residuals(saving(both), 1.0)]
    assert len(shapes) == 3


def test_save_from_both_policies_refuses_offloading() -> None:
    both = policies.save_from_both_policies(POLICIES["offload dots"], POLICIES["nothing"])
    with pytest.raises(ValueError, match=r"(?s)True or False.*Recompute and False.*write a policy"):
        minijax.grad(minijax.checkpoint(lambda x: jnp.sin(x @ x).sum(), policy=both))(MATRIX)


def test_offloading_refuses_names_that_are_saved() -> None:
    with pytest.raises(ValueError, match=r"(?s)not both.*\['a'\]"):
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"],
            names_which_can_be_offloaded=["a"],
            offload_src="device",
            offload_dst="pinned_host",
        )


def test_offloaded_values_move_to_the_host_and_back() -> None:
    f = minijax.checkpoint(lambda x: jnp.sin(x @ x).sum(), policy=POLICIES["offload dots"])
    text = str(minijax.make_jaxpr(minijax.grad(f))(MATRIX))
    assert "f32<host>[3,3] = move_to_memory[kind=pinned_host]" in text
    assert "f32[3,3] = move_to_memory[kind=device]" in text


def test_offloaded_values_move_in_programs_for_devices_with_memory_of_their_own() -> None:
    f = minijax.checkpoint(lambda x: jnp.sin(x @ x).sum(), policy=POLICIES["offload dots"])
    lowered = minijax.jit(minijax.grad(f)).lower(MATRIX, _lowering_platforms=("cuda",))
    moves = [line for line in lowered.as_text().splitlines() if "annotate_device" in line]
    assert ['"pinned_host"' in moves[0], '"device"' in moves[1]] == [True, True]


def test_decisions_print_their_names() -> None:
    assert [repr(Saveable), repr(Recompute)] == ["Saveable", "Recompute"]
    assert repr(Offloadable("device", "pinned_host")).startswith("Offloadable(src='device'")


def test_checkpoint_name_passes_trees_and_tangents() -> None:
    out, tangent = minijax.jvp(lambda x: checkpoint_name({"a": x, "b": 2}, "n"), (1.0,), (3.0,))
    assert (float(out["a"]), int(out["b"]), float(tangent["a"])) == (1.0, 2, 3.0)
    assert "name[name=n]" in str(minijax.make_jaxpr(lambda x: checkpoint_name(x, "n"))(1.0))


def saving(policy: Any) -> Callable[..., Any]:
    def chain(x: Any) -> Any:
        return jnp.sin(checkpoint_name(jnp.sin(checkpoint_name(jnp.sin(x), "a")), "b"))

    return minijax.checkpoint(chain, policy=policy)


@pytest.mark.feature("PE-02")
def test_saved_residuals_tell_names_and_lines() -> None:
    lines = [text for _, text in ad_checkpoint.saved_residuals(saving(POLICIES["a"]), 1.0)]
    assert lines[0] == "from the argument x"
    assert lines[1].startswith("named 'a' from ")
    assert "test_checkpoint.py:" in lines[1]
    assert lines[1].endswith("chain)")


def test_saved_residuals_tell_constants_arguments_and_calls() -> None:
    constant = jnp.arange(3.0)

    def f(x: Any, *, k: Any) -> Any:
        return minijax.jit(jnp.sin)(x) * jnp.exp(k) * constant

    found = ad_checkpoint.saved_residuals(f, jnp.ones(3), k=jnp.ones(3))
    kinds = [text.split(" from /")[0] for _, text in found]
    assert kinds[0] == "from a constant"
    assert "output of jitted function 'sin'" in kinds
    assert "output of exp" in kinds


def test_saved_residuals_with_everything_recomputed_are_the_arguments() -> None:
    found = ad_checkpoint.saved_residuals(minijax.checkpoint(two_layers), MATRIX, MATRIX)
    assert [text for _, text in found] == ["from the argument w", "from the argument x"]


def test_print_saved_residuals_prints_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    ad_checkpoint.print_saved_residuals(minijax.checkpoint(two_layers), MATRIX, MATRIX)
    text = capsys.readouterr().out
    assert text == "f32[3,3] from the argument w\nf32[3,3] from the argument x\n"


def test_saved_residuals_refuse_what_cannot_be_called() -> None:
    with pytest.raises(TypeError, match="saved_residuals: expected a function"):
        ad_checkpoint.saved_residuals(3)  # type: ignore[arg-type]
