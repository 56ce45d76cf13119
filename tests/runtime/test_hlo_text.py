"""The text of an HLO module is read as XLA writes it."""

from __future__ import annotations

from minijax.runtime.hlo_text import Instruction


def test_long_lists_of_operands_are_read_without_their_counts() -> None:
    rest = "(f32[], f32[2]) all-reduce(%a, %b, /*index=2*/%c), channel_id=1, to_apply=%sum"

    assert Instruction(None, "all-reduce", rest).operands == ["a", "b", "c"]
