"""Groups of devices, in each form that XLA prints, are matched with the axes of meshes."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minijax.explain import groups
from minijax.explain.groups import Box

MESH = Box(("x", "y"), np.arange(8).reshape(4, 2))


def axes(attributes, *meshes):
    return groups.axes_of_groups(groups.read_groups(attributes, 8), meshes or (MESH,))


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("replica_groups={{0,2,4,6},{1,3,5,7}}, dimensions={0}", ("x",)),
        ("channel_id=1, replica_groups={{0,1},{2,3},{4,5},{6,7}}", ("y",)),
        ("replica_groups={{0,1,2,3,4,5,6,7}}", ("x", "y")),
        ("replica_groups={}, to_apply=%add", ("x", "y")),
        ("replica_groups={{0},{1},{2},{3},{4},{5},{6},{7}}", ()),
        ("replica_groups=[4,2]<=[8], dimensions={1}", ("y",)),
        ("replica_groups=[2,4]<=[4,2]T(1,0), use_global_device_ids=true", ("x",)),
        ("replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_0'}, dimensions={0}", ("x",)),
        ("replica_groups=mesh['axis_0'=4,'axis_1'=1,'axis_2'=2] {'axis_2'}", ("y",)),
        ("replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_0','axis_1'}", ("x", "y")),
        ("replica_groups=mesh['a'=4,'b'=2] {'a':(2)2}", ("x:(2)2",)),
        ("replica_groups=mesh['a'=4,'b'=2] {'a':(1)2}", ("x:(1)2",)),
        (
            "replica_groups=mesh['axis_0'=2,'axis_1'=4], device_ids=([2,2,2]T(0,2,1)) "
            "{'axis_1':(2)2}",
            ("x:(2)2",),
        ),
        ("replica_groups=mesh['a'=2,'b'=4], device_ids=(0,2,4,6,1,3,5,7) {'b'}", ("x",)),
    ],
)
def test_groups_are_read_in_every_printed_form(attributes, expected):
    assert axes(attributes) == expected


@pytest.mark.parametrize(
    "attributes",
    ["replica_groups={{0,3},{1,2},{4,7},{5,6}}", "replica_groups={{0,1,2},{3}}", "dimensions={0}"],
)
def test_groups_that_fit_no_axes_have_none(attributes):
    assert axes(attributes) is None


def test_devices_that_are_in_no_mesh_have_no_axes():
    half = Box(("z",), np.arange(4))
    assert axes("replica_groups={{0,1,2,3},{4,5,6,7}}", half) is None


def test_an_axis_of_size_one_is_never_named():
    mesh = Box(("one", "x"), np.arange(8).reshape(1, 8))
    assert axes("replica_groups={{0,1,2,3,4,5,6,7}}", mesh) == ("x",)


def test_whole_axes_of_one_mesh_win_over_parts_of_another():
    flat = Box(("all",), np.arange(8))
    assert axes("replica_groups=[4,2]<=[8]", flat, MESH) == ("y",)


def test_a_mesh_with_its_devices_in_another_order_is_matched():
    reordered = Box(("a", "b"), np.array([[7, 6, 5, 4], [3, 2, 1, 0]]))
    assert axes("replica_groups={{0,1,2,3},{4,5,6,7}}", reordered) == ("b",)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ("{{0,2},{2,4},{4,6},{6,0},{1,3},{3,5},{5,7},{7,1}}", ("x",)),
        ("{{0,1},{1,0}}", ("y",)),
        ("{{0,3},{3,0}}", ("x:(2)2", "y")),
        ("{{0,0}}", ()),
    ],
)
def test_a_permutation_runs_over_the_axes_along_which_it_moves(pairs, expected):
    found = groups.read_pairs(f"channel_id=1, source_target_pairs={pairs}, metadata={{}}")
    assert groups.axes_of_pairs(found, (MESH,)) == expected


@given(sizes=st.lists(st.sampled_from([2, 3, 4, 6]), min_size=1, max_size=3), data=st.data())
def test_groups_of_any_axes_of_any_mesh_are_recognized(sizes, data):
    names = tuple("abc"[: len(sizes)])
    ids = np.array(data.draw(st.permutations(range(int(np.prod(sizes))))))
    mesh = Box(names, ids.reshape(sizes))
    chosen = data.draw(st.sets(st.sampled_from(names), min_size=1))
    rows: dict[tuple[int, ...], list[int]] = {}
    for place in itertools.product(*map(range, sizes)):
        key = tuple(i for i, name in zip(place, names, strict=True) if name not in chosen)
        rows.setdefault(key, []).append(int(mesh.ids[place]))
    text = ",".join("{" + ",".join(map(str, row)) + "}" for row in rows.values())
    found = groups.read_groups(f"replica_groups={{{text}}}", ids.size)
    assert groups.axes_of_groups(found, (mesh,)) == tuple(n for n in names if n in chosen)
