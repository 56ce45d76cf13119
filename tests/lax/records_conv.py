"""Records of convolutions: strides, paddings, dilations, groups and orders of dimensions."""

from __future__ import annotations

import numpy as np

from minijax import lax
from tests.lax.records import Arg, ErrorSample, Record

_EVERY = ("float32", "int8", "int32", "float16", "bfloat16", "complex64")
_X = np.zeros((2, 3, 6, 7), np.float32)
_W = np.zeros((4, 3, 2, 3), np.float32)
_NHWC = ("NHWC", "HWIO", "NHWC")


def _wide(x):
    """Halves as floats that NumPy multiplies."""
    return x.astype(np.float64) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x


def _spread(x, axis, step):
    """Zeros between the elements along one dimension."""
    sizes = list(x.shape)
    sizes[axis] = max((x.shape[axis] - 1) * step + 1, 0)
    out = np.zeros(sizes, x.dtype)
    out[(slice(None),) * axis + (slice(None, None, step),)] = x
    return out


def _padded(x, axis, pads):
    edges = [(0, 0)] * x.ndim
    edges[axis] = tuple(max(p, 0) for p in pads)
    x = np.pad(x, edges)
    cut = slice(max(-pads[0], 0), x.shape[axis] - max(-pads[1], 0))
    return x[(slice(None),) * axis + (cut,)]


def convolved(x, w, strides, pads, image=None, kernel=None, groups=1, batches=1):
    """A convolution in the order batch, features, space; place by place."""
    x, w = _wide(x), _wide(w)
    rank = len(strides)
    for d in range(rank):
        x = _padded(_spread(x, d + 2, (image or [1] * rank)[d]), d + 2, pads[d])
        w = _spread(w, d + 2, (kernel or [1] * rank)[d])
    space = [
        max((n - k) // s + 1, 0) for n, k, s in zip(x.shape[2:], w.shape[2:], strides, strict=True)
    ]
    images, outputs = x.shape[0] // batches, w.shape[0]
    out = np.zeros((images, outputs, *space), x.dtype)
    for o in range(outputs):
        group, batch = o // (outputs // groups), o // (outputs // batches)
        features = slice(group * w.shape[1], (group + 1) * w.shape[1])
        own = x[batch * images : (batch + 1) * images, features]
        for place in np.ndindex(*space):
            box = tuple(
                slice(i * s, i * s + k) for i, s, k in zip(place, strides, w.shape[2:], strict=True)
            )
            window = own[(slice(None), slice(None), *box)]
            out[(slice(None), o, *place)] = np.sum(
                window * w[o], axis=tuple(range(1, rank + 2)), dtype=x.dtype
            )
    return out


def _record(case, shapes, strides, pads, **options):
    settings = {k: options.pop(k, None) for k in ("image", "kernel")}
    counts = {k: options.pop(k, 1) for k in ("groups", "batches")}
    return Record(
        name="conv_general_dilated",
        case=case,
        call=lambda x, w: lax.conv_general_dilated(
            x,
            w,
            strides,
            pads,
            settings["image"],
            settings["kernel"],
            feature_group_count=counts["groups"],
            batch_group_count=counts["batches"],
        ),
        oracle=lambda x, w: convolved(x, w, strides, pads, **settings, **counts),
        args=tuple(map(Arg, shapes)),
        grad=(0, 1),
        **options,
    )


def _faulty(text, error, *args, x=_X, w=_W, strides=(1, 1), padding="SAME", **options):
    return ErrorSample(
        lambda x, w: lax.conv_general_dilated(x, w, strides, padding, *args, **options),
        (x, w),
        error,
        text,
    )


_ERRORS = (
    _faulty("different dtypes", TypeError, w=_W.astype(np.int32)),
    _faulty("the same rank", TypeError, w=_W[0]),
    _faulty("one entry for each spatial", ValueError, strides=(1,)),
    _faulty("one entry for each spatial", ValueError, (1,)),
    _faulty("must be positive", ValueError, strides=(0, 1)),
    _faulty("must be positive", TypeError, None, (0, 1)),
    _faulty("must be a sequence", TypeError, strides=1),
    _faulty("unknown kind of padding", RuntimeError, padding="FOO"),
    _faulty("a name or a pair", ValueError, padding=5),
    _faulty("a name or a pair", ValueError, padding=[(1, 2, 3), (1, 1)]),
    _faulty("a pair for each spatial", TypeError, padding=[(1, 1)]),
    _faulty("cuts off more than there is", ValueError, padding=[(-9, 1), (0, 0)]),
    _faulty("does not say how", ValueError, (2, 1)),
    _faulty("3 features are not the kernel's 2", ValueError, w=_W[:, :2]),
    _faulty("times feature_group_count 2", ValueError, feature_group_count=2),
    _faulty("must be positive, and one of them 1", ValueError, feature_group_count=0),
    _faulty(
        "must be positive, and one of them 1",
        ValueError,
        feature_group_count=3,
        batch_group_count=2,
    ),
    _faulty("must divide", ValueError, batch_group_count=3),
    _faulty("not a way to write", TypeError, dimension_numbers=5),
    _faulty("not a way to write", TypeError, dimension_numbers=("NCHW", "OIHW")),
    _faulty("the letters 'NCHX'", TypeError, dimension_numbers=("NCHW", "OIHW", "NCHX")),
    _faulty("one letter for each", TypeError, dimension_numbers=("NCH", "OIH", "NCH")),
    _faulty("not a precision", ValueError, precision="exact"),
    _faulty("does not hold the results", TypeError, preferred_element_type="int8"),
    _faulty("does not hold the results", TypeError, preferred_element_type="float16"),
)
_SHAPES = (2, 3, 6, 7), (4, 3, 2, 3)
_NONE = ((0, 0), (0, 0))


def _grown(x, w):
    """The gradient of a strided convolution, element by element of the image."""
    rows, columns = 2 * x.shape[1] - 1 + 2, 2 * x.shape[2] - 1 + 1
    out = np.zeros((x.shape[0], rows + w.shape[0] - 3, columns + w.shape[1] - 2, w.shape[2]))
    for i in range(x.shape[1]):
        for j in range(x.shape[2]):
            box = slice(2 * i, 2 * i + w.shape[0]), slice(2 * j, 2 * j + w.shape[1])
            out[(slice(None), *box)] += np.einsum("nc,hwoc->nhwo", x[:, i, j], w)
    return out


def _windows(x):
    """The windows of size (2, 3), as features."""
    n, c, h, w = x.shape
    out = np.zeros((n, c * 6, h - 1, w - 2), x.dtype)
    for i, j in np.ndindex(h - 1, w - 2):
        out[:, :, i, j] = x[:, :, i : i + 2, j : j + 3].reshape(n, c * 6)
    return out


RECORDS = [
    _record("plain", _SHAPES, (1, 1), _NONE, dtypes=_EVERY, errors=_ERRORS),
    _record("strided", _SHAPES, (2, 2), ((1, 2), (0, 1))),
    _record("dilated", _SHAPES, (1, 2), ((1, 1), (0, 2)), image=(2, 1), kernel=(1, 2)),
    _record("image_dilated", _SHAPES, (2, 1), ((2, 0), (1, 1)), image=(3, 2)),
    _record("negative", _SHAPES, (1, 1), ((-1, 2), (1, -2))),
    _record("negative_dilated", _SHAPES, (1, 2), ((-2, 1), (-1, -1)), image=(2, 2)),
    _record("feature_groups", ((2, 4, 5, 4), (6, 2, 2, 3)), (1, 1), ((1, 0), (1, 1)), groups=2),
    _record("depthwise", ((2, 3, 5, 4), (6, 1, 2, 2)), (2, 1), _NONE, groups=3, kernel=(1, 2)),
    _record("batch_groups", ((4, 3, 5, 4), (6, 3, 2, 3)), (1, 1), _NONE, batches=2),
    _record(
        "batch_groups_strided",
        ((4, 2, 5, 6), (4, 2, 2, 3)),
        (2, 1),
        ((1, 1), (2, 0)),
        batches=4,
        image=(1, 2),
    ),
    _record("line", ((2, 3, 8), (4, 3, 3)), (2,), ((2, 1),)),
    _record("points", ((2, 3), (4, 3)), (), ()),
    _record("volume", ((1, 2, 3, 4, 3), (3, 2, 2, 2, 2)), (1, 2, 1), ((0, 0), (1, 1), (0, 1))),
    _record("too_small", ((2, 3, 1, 7), (4, 3, 2, 3)), (1, 1), _NONE),
    Record(
        name="conv_general_dilated",
        case="channels_last",
        call=lambda x, w: lax.conv_general_dilated(x, w, (1, 2), "SAME", None, None, _NHWC),
        oracle=lambda x, w: np.moveaxis(
            convolved(np.moveaxis(x, 3, 1), w.transpose(3, 2, 0, 1), (1, 2), ((0, 1), (1, 1))),
            1,
            3,
        ),
        args=(Arg((2, 6, 7, 3)), Arg((2, 3, 3, 4))),
        grad=(0, 1),
    ),
    Record(
        name="conv_general_dilated",
        case="preferred",
        call=lambda x, w: lax.conv(x, w, (1, 1), "VALID", preferred_element_type=np.float32),
        oracle=lambda x, w: convolved(x, w, (1, 1), _NONE),
        args=tuple(map(Arg, _SHAPES)),
        dtypes=("float16", "bfloat16"),
        tolerance=2e-5,
    ),
    Record(
        name="conv_general_dilated",
        case="transpose",
        call=lambda x, w: lax.conv_transpose(x, w, (2, 2), "VALID", transpose_kernel=True),
        oracle=_grown,
        args=(Arg((2, 3, 4, 3)), Arg((3, 2, 2, 3))),
        grad=(0, 1),
        errors=(
            ErrorSample(
                lambda x, w: lax.conv_transpose(x, w, (2, 2), "FOO"),
                (_X, _W),
                ValueError,
                "unknown kind of padding",
            ),
            ErrorSample(
                lambda x: lax.conv_transpose(x, x, (1,) * 4, "SAME"),
                (np.zeros((1,) * 6),),
                ValueError,
                "needs dimension_numbers",
            ),
        ),
    ),
    Record(
        name="conv_general_dilated",
        case="patches",
        call=lambda x: lax.conv_general_dilated_patches(x, (2, 3), (1, 1), "VALID"),
        oracle=_windows,
        args=(Arg((2, 3, 4, 5)),),
        dtypes=("float32", "int32", "bfloat16"),
        grad=(0,),
    ),
    Record(
        name="conv_general_dilated",
        case="local",
        call=lambda x, w: lax.conv_general_dilated_local(x, w, (1, 1), "VALID", (2, 3)),
        oracle=lambda x, w: np.einsum("nfhw,ofhw->nohw", _windows(x), w),
        args=(Arg((2, 3, 4, 5)), Arg((4, 18, 3, 3))),
        grad=(0, 1),
    ),
]
