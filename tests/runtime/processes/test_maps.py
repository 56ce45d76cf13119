"""`pmap` over two processes: each passes the slices of its devices and gets theirs back."""

from typing import Any

import pytest

from tests.runtime.processes import launch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.turns(3, together=True),
    pytest.mark.feature("PM-09", "NP-09"),
]


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    return launch.facts_of("maps")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("result", [[True, [22, 23]], [True, [32, 33]]]),
        ("homes", [[0, 0], [1, 1]]),
        ("again", [[110, 110]] * 2),
        ("afterwards", [47, 67]),
        ("columns", [[[3, 2], [[0, 2]] * 3], [[3, 2], [[20, 22]] * 3]]),
        ("one copy", [22, 22]),
        ("shared", [[0.5, 1.5], [10.5, 11.5]]),
        ("around", [[11, 0], [1, 10]]),
        ("gathered", [[[0, 1, 10, 11]] * 2] * 2),
        ("donated", [[True, [2, 3]], [True, [12, 13]]]),
        ("gradient", [[176, 176]] * 2),
        ("nested", [[[22, 22]]] * 2),
        ("under disable_jit", [[22, 22]] * 2),
    ],
)
def test_pmap_spans_processes(found: list[dict[str, Any]], name: str, expected: Any) -> None:
    assert [own[name] for own in found] == expected


@pytest.mark.feature("PM-10")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("index", [[0, 1], [2, 3]]),
        ("backwards", [[2, 3], [0, 1]]),
        ("in turn", [[0, 2], [1, 3]]),
        ("own", [[0, 1], [0, 1]]),
        ("one of each", [[0], [1]]),
    ],
)
def test_slices_are_numbered_in_order_of_devices(
    found: list[dict[str, Any]], name: str, expected: Any
) -> None:
    assert [own[name] for own in found] == expected


def test_axis_size_says_who_takes_part(found: list[dict[str, Any]]) -> None:
    assert [own["size of all"] for own in found] == [[22, 22], [22, 22]]
    assert [own["size of own"] for own in found] == [[1, 1], [21, 21]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("of others", "ValueError: pmap: devices for <lambda> must include one of this process."),
        ("with a map inside", "ValueError: pmap: total has a pmap inside and names devices of"),
        ("wrong size", "ValueError: pmap: axis_size is not the number of slices of all processes"),
        ("too few", "ValueError: pmap: among several processes, the mapped dimension must have"),
        ("too few inside", "ValueError: pmap: among several processes, a map with maps inside"),
    ],
)
def test_pmap_refuses_what_does_not_fit_processes(
    found: list[dict[str, Any]], name: str, text: str
) -> None:
    assert all(own[name].startswith(text) for own in found)


def test_jit_of_pmap_is_refused(found: list[dict[str, Any]]) -> None:
    for own in found:
        assert own["in jit"].startswith("NotImplementedError: <lambda>: jit of pmap works in one")


@pytest.mark.feature("JT-34")
def test_collectives_that_processes_lack_are_listed(found: list[dict[str, Any]]) -> None:
    for own in found:
        assert own["not on the list"].startswith("TypeError: pmap: ragged has collectives")
        assert "ragged_all_to_all" in own["not on the list"]
