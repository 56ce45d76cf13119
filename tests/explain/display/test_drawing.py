"""Pictures of shardings: boxes in a terminal, SVG in a notebook."""

import sys
import types

import numpy as np
import pytest

import minijax as jax
from minijax import debug
from minijax.sharding import Mesh, NamedSharding, PartitionSpec

P = PartitionSpec


@pytest.fixture(scope="module")
def mesh():
    with jax.cpu_devices(8):
        yield Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))


def drawn(capsys, shape, sharding, **options):
    assert debug.visualize_sharding(shape, sharding, **options) is None
    return capsys.readouterr().out.splitlines()


def test_a_matrix_is_drawn_in_boxes(mesh, capsys):
    assert drawn(capsys, (8, 8), NamedSharding(mesh, P("x", "y")), scale=0.5) == [
        "┌──────────┬──────────┐",
        "│  CPU 0   │  CPU 1   │",
        "├──────────┼──────────┤",
        "│  CPU 2   │  CPU 3   │",
        "├──────────┼──────────┤",
        "│  CPU 4   │  CPU 5   │",
        "├──────────┼──────────┤",
        "│  CPU 6   │  CPU 7   │",
        "└──────────┴──────────┘",
    ]


def test_replicas_share_a_box(mesh, capsys):
    assert drawn(capsys, (8,), NamedSharding(mesh, P("y")), scale=0.4) == [
        "┌─────────────┬─────────────┐",
        "│ CPU 0,2,4,6 │ CPU 1,3,5,7 │",
        "└─────────────┴─────────────┘",
    ]


def test_labels_wrap_where_the_width_is_short(mesh, capsys):
    found = drawn(capsys, (8,), NamedSharding(mesh, P()), max_width=10, scale=0.2)
    assert found == [
        "┌─────────┐",
        "│ CPU 0,1,│",
        "│ 2,3,4,5,│",
        "│   6,7   │",
        "└─────────┘",
    ]


def test_columns_are_as_wide_as_asked(mesh, capsys):
    found = drawn(capsys, (8, 8), NamedSharding(mesh, P(None, "y")), min_width=30)
    assert found[0] == "┌" + "┬".join(["─" * 30] * 2) + "┐"


def test_an_array_is_drawn_by_its_own_sharding(mesh, capsys):
    x = jax.device_put(np.ones(3), mesh.flat_devices[5])
    debug.visualize_array_sharding(x)
    assert "CPU 5" in capsys.readouterr().out


def test_colours_are_for_terminals_only(mesh, capsys, monkeypatch):
    sharding = NamedSharding(mesh, P("x"))
    plain = drawn(capsys, (8,), sharding)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    painted = drawn(capsys, (8,), sharding)
    without = drawn(capsys, (8,), sharding, use_color=False)
    assert plain == without
    assert "\x1b[30;48;5;" in "".join(painted)


def test_colours_can_be_forced(mesh, capsys):
    found = drawn(capsys, (8,), NamedSharding(mesh, P("x")), use_color="always")
    assert len({line.split("m")[0] for line in found[2].split("│")[1:-1]}) == 4


def test_a_color_map_gives_the_colours(mesh, capsys):
    found = drawn(
        capsys,
        (8,),
        NamedSharding(mesh, P()),
        use_color="always",
        color_map=lambda _: (1.0, 0.0, 0.0, 1.0),
    )
    assert "\x1b[30;48;5;196m" in found[1]


def test_notebooks_get_a_picture(mesh, capsys, monkeypatch):
    shell = type("ZMQInteractiveShell", (), {})()
    notebook = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    picture = debug.visualize_sharding((8, 8), NamedSharding(mesh, P("x", "y")))
    svg = picture._repr_html_()
    assert capsys.readouterr().out == ""
    assert svg.startswith("<svg ")
    assert svg.count("<rect ") == 8
    assert ">CPU 7</text>" in svg


def test_an_empty_array_is_drawn_whole(mesh, capsys):
    assert "CPU 0,1,2,3,4,5,6,7" in drawn(capsys, (0,), NamedSharding(mesh, P()))[2]


def test_dimensions_that_are_unstacked_are_drawn(mesh, capsys):
    class Unstacked(NamedSharding):
        """As `pmap` places values: each device holds one element of the first dimension."""

        def devices_indices_map(self, shape):
            cuts = super().devices_indices_map(shape)
            return {d: (first.start or 0, *rest) for d, (first, *rest) in cuts.items()}

    found = drawn(capsys, (4, 2), Unstacked(mesh, P("x", "y")))
    assert found == drawn(capsys, (4, 2), NamedSharding(mesh, P("x", "y")))


def test_other_ranks_are_refused(mesh):
    with pytest.raises(ValueError, match=r"draws arrays of rank 1 and 2 only"):
        debug.visualize_sharding((8, 8, 8), NamedSharding(mesh, P("x")))


def test_abstract_meshes_are_refused(mesh):
    with pytest.raises(ValueError, match=r"needs devices, and the mesh is abstract"):
        debug.visualize_sharding((8,), NamedSharding(mesh.abstract_mesh, P("x")))


def test_uneven_parts_are_refused(mesh):
    with pytest.raises(ValueError, match=r"dimension 0 of size 7 cannot be cut into 4"):
        debug.visualize_sharding((7,), NamedSharding(mesh, P("x")))


def test_traced_values_are_refused():
    with pytest.raises(TypeError, match=r"debug.inspect_array_sharding"):
        jax.jit(debug.visualize_array_sharding)(np.ones(3))
