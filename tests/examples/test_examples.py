"""Every example runs as a newcomer would run it, and keeps the promise of its first line."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

pytestmark = pytest.mark.turns(3)

EXAMPLES = Path(__file__).parents[2] / "examples"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    """The module that the test names, imported as its neighbours in the folder import it."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module(request.param)


def runs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("example", [name], indirect=True, ids=[name])


@pytest.mark.turns(9)
@pytest.mark.slow
@runs("demo")
def test_demo_reads_97_percent_of_held_out_digits(example: ModuleType, tmp_path: Path) -> None:
    result = example.main(tmp_path)

    assert result.accuracy >= 0.97
    assert result.picture.read_bytes().startswith(PNG)


@pytest.mark.slow
@runs("demo")
@pytest.mark.parametrize("columns", [60, 80, 140])
def test_demo_stages_fit_the_terminal(
    example: ModuleType,
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))

    example.show_stages()

    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns


@pytest.mark.slow
@runs("demo")
def test_demo_shows_every_stage(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    example.show_stages()

    text = capsys.readouterr().out
    for mark in ["def wave(w, x):", "{ lambda ;", "cos", "f32[4]", "stablehlo.multiply", "ENTRY"]:
        assert mark in text


@pytest.mark.turns(9)
@pytest.mark.slow
@runs("charlm")
def test_charlm_speaks_its_grammar(example: ModuleType) -> None:
    result = example.main()

    assert result.grammar_bits - 0.2 < result.model_bits < result.grammar_bits + 0.5
    assert result.correct >= 0.85


@runs("charlm")
def test_charlm_refuses_wrong_agreement(example: ModuleType) -> None:
    assert example.is_correct("the hens near every tall king fear one cat.")
    assert not example.is_correct("the hens near every tall king fears one cat.")


@pytest.mark.slow
@runs("model_file")
def test_model_in_a_file_is_the_model(example: ModuleType) -> None:
    result = example.main()

    assert result.here >= 0.9
    assert result.elsewhere[297] == pytest.approx(result.here)
    assert result.losses[-1] < result.losses[0]
    assert result.file_size < 20_000


@pytest.mark.slow
@runs("compiled_file")
def test_compiled_program_in_a_file_computes_the_same(example: ModuleType) -> None:
    result = example.main()

    assert result.elsewhere == result.here
    assert result.here == pytest.approx(float(example.product(example.chain())), rel=1e-4)
    assert len(result.layouts) == example.LENGTH


@pytest.mark.slow
@runs("newton_logistic")
def test_newton_finds_the_minimum_in_ten_steps(example: ModuleType) -> None:
    result = example.main()

    assert len(result.newton.gradient_norms) <= 11
    assert result.newton.gradient_norms[-1] < 1e-4 * result.newton.gradient_norms[0]
    assert result.newton.gradient_norms[-1] < 0.01 * result.descent.gradient_norms[-1]
    assert result.accuracy >= 0.97


@pytest.mark.slow
@runs("newton_logistic")
def test_newton_agrees_with_scikit_learn(example: ModuleType) -> None:
    train, _ = example.load()
    theirs = LogisticRegression(C=1 / example.PENALTY, tol=1e-8, max_iter=10_000)
    theirs.fit(train.inputs[:, :-1], train.labels)

    ours = np.asarray(example.fit_newton(train).weights)

    np.testing.assert_allclose(ours[:-1], theirs.coef_[0], atol=1e-3)
    np.testing.assert_allclose(ours[-1], theirs.intercept_[0], atol=1e-3)


@pytest.mark.slow
@runs("vae_digits")
def test_vae_beats_a_model_without_structure(example: ModuleType, tmp_path: Path) -> None:
    result = example.main(tmp_path)

    assert result.model_nats < 0.75 * result.baseline_nats
    assert result.picture.read_bytes().startswith(PNG)


@pytest.mark.slow
@runs("clipped_gradients")
def test_clipping_withstands_broken_images(example: ModuleType) -> None:
    result = example.main()

    assert result.clipped >= 0.93
    assert result.clipped > result.plain + 0.3


@pytest.mark.slow
@runs("clipped_gradients")
def test_per_example_gradients_equal_a_loop(example: ModuleType) -> None:
    train, _ = example.digits.load()
    batch = example.digits.Examples(train.images[:5], train.labels[:5])
    network = example.init_network()

    together = example.per_example_gradients(network, batch)

    gradient = example.jax.grad(example.loss)
    one_by_one = [gradient(network, *pair) for pair in zip(*batch, strict=True)]
    for leaf, rows in zip(together, zip(*one_by_one, strict=True), strict=True):
        np.testing.assert_allclose(leaf, np.stack(rows), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.feature("ST-06", "ST-09")
@runs("cores")
def test_cores_multiply_sparse_matrices_and_differentiate(
    example: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    result = example.main()

    matrix, other = example.workload()
    rows = result.expected.reshape(example.ROWS, example.BLOCK, -1).repeat(example.FILLED, axis=0)
    parts = other.reshape(example.COLUMNS, example.BLOCK, -1)[matrix.columns]
    np.testing.assert_allclose(result.product, result.expected, atol=1e-4)
    np.testing.assert_allclose(result.gradient, rows @ parts.swapaxes(1, 2), atol=1e-2)
    assert "product: the cores 0 and 1 write to one place" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.feature("EX-11", "EX-12")
@runs("layers")
def test_layers_read_97_percent_of_held_out_digits(example: ModuleType) -> None:
    result = example.main()

    assert result.accuracy >= 0.97
    assert result.weights < 40_000
