"""The example that starts itself twice."""

import importlib
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.feature("NP-09")
def test_two_processes_train_as_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    result = importlib.import_module("two_processes").main()

    np.testing.assert_allclose(result.losses, [result.alone] * 2, rtol=1e-4)
    assert result.alone[-1] < 0.5 * result.alone[0]
