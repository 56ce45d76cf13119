"""The text of an HLO module is read as XLA writes it."""

from __future__ import annotations

from minijax.runtime.hlo_text import HloModule, Instruction


def test_long_lists_of_operands_are_read_without_their_counts() -> None:
    rest = "(f32[], f32[2]) all-reduce(%a, %b, /*index=2*/%c), channel_id=1, to_apply=%sum"

    assert Instruction(None, "all-reduce", rest).operands == ["a", "b", "c"]


def test_elements_of_tuples_in_operands_are_instructions() -> None:
    module = HloModule(
        "HloModule m\n\n"
        "ENTRY %main (p: (s32[], f32[2,3])) -> f32[2,3] {\n"
        "  %p = (s32[], /*index=1*/f32[2,3]{1,0}) parameter(0)\n"
        "  ROOT %r = f32[2,3]{1,0} custom-call(%p#1, %p#0, %other#1)\n"
        "}\n"
    )
    entry = module.computations["main"]
    assert list(entry) == ["p", "p#1", "p#0", "r"]
    element = entry["p#1"]
    assert (element.opcode, element.operands) == ("get-tuple-element", ["p"])
    assert (element.type_text, element.attributes) == ("f32[2,3]{1,0}", ", index=1")
