"""Networks as pairs of functions: one makes the parameters, the other applies the network.

What jax.example_libraries.stax has.  A layer is `(init_fun, apply_fun)`:

    output_shape, params = init_fun(rng, input_shape)
    outputs = apply_fun(params, inputs, rng=None, **kwargs)

Input shapes may have -1 for the size of the batch.  Layers are made by functions, or are there
already, such as `Relu`; `serial` and `parallel` compose them.

Source: S. Ioffe and C. Szegedy, Batch normalization, 2015; N. Srivastava and others, Dropout, 2014;
X. Glorot and Y. Bengio, Understanding the difficulty of training deep feedforward neural networks,
2010, for the first weights.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from minijax.core.errors import error
from minijax.lax.binary import add
from minijax.lax.binary import max as greater
from minijax.lax.convolution import conv_general_dilated, conv_transpose
from minijax.lax.window_reduction import reduce_window
from minijax.nn.activations import elu, gelu, leaky_relu, relu, selu, sigmoid, softplus, standardize
from minijax.nn.initializers import glorot_normal, normal, ones, zeros
from minijax.numpy.creation import ones_like
from minijax.numpy.elementary import exp, tanh
from minijax.numpy.joining import concatenate
from minijax.numpy.normalized_exponentials import log_softmax, softmax
from minijax.numpy.selection import where
from minijax.numpy.shaping import expand_dims, reshape
from minijax.random.discrete import bernoulli
from minijax.random.keys import split
from minijax.runtime.array import Array

_NAME = "example_libraries.stax"

Params: TypeAlias = Any
Padding: TypeAlias = str | Sequence[tuple[int, int]]
Init: TypeAlias = Callable[..., Array]
_DENSE_KERNEL, _DENSE_BIAS, _BIAS = glorot_normal(), normal(), normal(1e-6)

InitFun: TypeAlias = Callable[[Any, Any], tuple[Any, Any]]


class Layer(NamedTuple):
    """A layer.

    Attributes:
        init: for a key and the shape of its inputs, the shape of its outputs and its parameters.
        apply: for parameters and inputs, its outputs; `rng=` is a key for layers that draw.

    Source:     minijax's own; JAX's layers are pairs.

    Example:
        >>> from minijax.example_libraries import stax
        >>> stax.Relu.apply((), jnp.array([-1.0, 2.0]))
        Array([0., 2.], dtype=float32)
    """

    init: InitFun
    apply: Callable[..., Any]


def elementwise(fun: Callable[..., Array], **fun_kwargs: Any) -> Layer:
    """A layer without parameters, `fun(inputs, **fun_kwargs)`, which keeps the shape.

    Example:
        >>> from minijax.example_libraries import stax
        >>> init, apply = stax.elementwise(jnp.power, x2=2)
        >>> init(jax.random.key(0), (3,))
        ((3,), ())
    """

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Array:
        return fun(inputs, **fun_kwargs)

    return Layer(lambda rng, input_shape: (input_shape, ()), apply)


Tanh = elementwise(tanh)
Relu = elementwise(relu)
Exp = elementwise(exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)


def Dense(  # noqa: N802
    out_dim: int,
    W_init: Init = _DENSE_KERNEL,  # noqa: N803
    b_init: Init = _DENSE_BIAS,
) -> Layer:
    """Multiplies the last dimension with a matrix W and adds a vector b.

    Shapes:     T[.., n] -> T[.., out_dim]; the parameters are (W, b).

    Example:
        >>> from minijax.example_libraries import stax
        >>> init, apply = stax.Dense(10)
        >>> shape, (W, b) = init(jax.random.key(0), (-1, 784))
        >>> shape, W.shape
        ((-1, 10), (784, 10))
    """

    def init(rng: Any, input_shape: Any) -> tuple[Any, Any]:
        of_w, of_b = split(rng)
        w = W_init(of_w, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (w, b_init(of_b, (out_dim,)))

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Array:
        w, b = params
        return inputs @ w + b

    return Layer(init, apply)


class _Convolution(NamedTuple):
    """A convolution, or its transpose: which dimension is what, and its window."""

    name: str
    dimension_numbers: tuple[str, str, str]
    features: int
    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: Padding
    length: Callable[[int, int, int, Any], int]

    def kernel_shape(self, input_shape: Any) -> Any:
        of_inputs, of_kernel, _ = self.dimension_numbers
        if len(input_shape) != len(of_inputs):
            problem = "the inputs have another rank than the dimension numbers."
            got = {"input_shape": input_shape, "dimension_numbers": self.dimension_numbers}
            error(ValueError, f"{_NAME}.{self.name}", problem, got=got)
        sizes = iter(self.window)
        known = {"O": self.features, "I": input_shape[of_inputs.index("C")]}
        return tuple(known[c] if c in known else next(sizes) for c in of_kernel)

    def output_shape(self, input_shape: Any) -> Any:
        of_inputs, of_kernel, of_outputs = self.dimension_numbers
        sizes = {"N": input_shape[of_inputs.index("N")], "C": self.features}
        spatial = [c for c in of_kernel if c not in "OI"]
        for i, c in enumerate(spatial):
            padding = self.padding if isinstance(self.padding, str) else self.padding[i]
            size = input_shape[of_inputs.index(c)]
            sizes[c] = self.length(size, self.window[i], self.strides[i], padding)
        return tuple(sizes[c] for c in of_outputs)


def _padding(name: str, padding: Padding) -> Padding:
    if not isinstance(padding, str):
        return tuple((below, above) for below, above in padding)
    if padding.upper() not in ("SAME", "VALID"):
        expected = "'SAME', 'VALID', or pairs of numbers"
        error(ValueError, f"{_NAME}.{name}", f"unknown padding {padding!r}.", expected=expected)
    return padding.upper()


def _length(size: int, window: int, stride: int, padding: Any) -> int:
    """How many windows fit."""
    if padding == "SAME":
        return -(-size // stride)
    below, above = (0, 0) if padding == "VALID" else padding
    return max(0, (size + below + above - window) // stride + 1)


def _transposed_length(size: int, window: int, stride: int, padding: Any) -> int:
    if padding == "SAME":
        return size * stride
    if padding == "VALID":
        return size * stride + max(window - stride, 0)
    return (size - 1) * stride + 1 + sum(padding) - window + 1


def _convolution_layer(
    convolution: _Convolution,
    W_init: Init | None,  # noqa: N803
    b_init: Init,
    convolve: Callable[..., Array],
) -> Layer:
    kernel = convolution.dimension_numbers[1]
    make_kernel = W_init or glorot_normal(kernel.index("I"), kernel.index("O"))

    def init(rng: Any, input_shape: Any) -> tuple[Any, Any]:
        of_w, of_b = split(rng)
        kernel_shape = convolution.kernel_shape(input_shape)
        outputs = convolution.dimension_numbers[2]
        bias_shape = tuple(convolution.features if c == "C" else 1 for c in outputs)
        params = make_kernel(of_w, kernel_shape), b_init(of_b, bias_shape)
        return convolution.output_shape(input_shape), params

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Array:
        w, b = params
        strides, numbers = convolution.strides, convolution.dimension_numbers
        found = convolve(inputs, w, strides, convolution.padding, dimension_numbers=numbers)
        return found + b

    return Layer(init, apply)


def GeneralConv(  # noqa: N802
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    W_init: Init | None = None,  # noqa: N803
    b_init: Init = _BIAS,
) -> Layer:
    """A convolution, and a number added to each feature.

    Args:
        dimension_numbers: what the dimensions of inputs, kernel and outputs are, as in
            ("NHWC", "HWIO", "NHWC").
        out_chan: how many features the outputs have.
        filter_shape: the size of the window.
        strides: from one window to the next; 1 where absent.
        padding: "SAME", "VALID", or a pair for each dimension of the window.
        W_init: makes the kernel; `glorot_normal` where absent.
        b_init: makes what is added.

    Raises:
        ValueError: the padding is unknown, or the inputs have another rank.

    Example:
        >>> from minijax.example_libraries import stax
        >>> init, apply = stax.GeneralConv(("NCH", "IOH", "NCH"), 8, (3,), padding="SAME")
        >>> init(jax.random.key(0), (-1, 4, 20))[0]
        (-1, 8, 20)
    """
    window = tuple(filter_shape)
    steps = tuple(strides) if strides else (1,) * len(window)
    pads = _padding("GeneralConv", padding)
    found = _Convolution("GeneralConv", dimension_numbers, out_chan, window, steps, pads, _length)
    return _convolution_layer(found, W_init, b_init, conv_general_dilated)


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))


def GeneralConvTranspose(  # noqa: N802
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    W_init: Init | None = None,  # noqa: N803
    b_init: Init = _BIAS,
) -> Layer:
    """A transposed convolution, which makes images larger; the arguments are `GeneralConv`'s.

    Raises:
        ValueError: the padding is unknown, or the inputs have another rank.

    Example:
        >>> from minijax.example_libraries import stax
        >>> init, apply = stax.ConvTranspose(8, (3, 3), strides=(2, 2), padding="SAME")
        >>> init(jax.random.key(0), (-1, 7, 7, 4))[0]
        (-1, 14, 14, 8)
    """
    window = tuple(filter_shape)
    steps = tuple(strides) if strides else (1,) * len(window)
    pads = _padding("GeneralConvTranspose", padding)
    found = _Convolution(
        "GeneralConvTranspose", dimension_numbers, out_chan, window, steps, pads, _transposed_length
    )
    return _convolution_layer(found, W_init, b_init, conv_transpose)


Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(  # noqa: N802
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Init = zeros,
    gamma_init: Init = ones,
) -> Layer:
    """Shifts and scales the inputs to mean 0 and variance 1 over `axis`, then to what is learnt.

    Args:
        axis: the dimensions over which mean and variance are taken.
        epsilon: is added to the variance.
        center: whether a mean `beta` is learnt.
        scale: whether a standard deviation `gamma` is learnt.
        beta_init: makes `beta`.
        gamma_init: makes `gamma`.

    The parameters are (beta, gamma), with () for what is not learnt.

    Example:
        >>> from minijax.example_libraries import stax
        >>> init, apply = stax.BatchNorm(axis=0)
        >>> _, params = init(jax.random.key(0), (-1, 1))
        >>> apply(params, jnp.array([[1.0], [3.0]])).round(3).ravel()
        Array([-1.,  1.], dtype=float32)
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng: Any, input_shape: Any) -> tuple[Any, Any]:
        of_beta, of_gamma = split(rng)
        shape = tuple(size for i, size in enumerate(input_shape) if i not in axes)
        beta = beta_init(of_beta, shape) if center else ()
        return input_shape, (beta, gamma_init(of_gamma, shape) if scale else ())

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Array:
        beta, gamma = params
        dims = [i for i in axes if i < inputs.ndim]
        found = standardize(inputs, axes, epsilon=epsilon)
        if scale:
            found = found * expand_dims(gamma, dims)
        return found + expand_dims(beta, dims) if center else found

    return Layer(init, apply)


def _pooling(
    name: str,
    reducer: Callable[..., Array],
    start: float,
    rescaled: Callable[..., Array] | None,
    given: tuple[Sequence[int], Sequence[int] | None, Padding, str | None],
) -> Layer:
    window_shape, strides, padding, spec = given
    spec = spec or "N" + "".join(map(chr, range(ord("a"), ord("a") + len(window_shape)))) + "C"
    pads = _padding(name, padding)

    def everywhere(values: Sequence[Any] | None, rest: object) -> tuple[Any, ...]:
        inner = iter(values or [1] * len(window_shape))
        return tuple(rest if c in "NC" else next(inner) for c in spec)

    window, steps = everywhere(window_shape, 1), everywhere(strides, 1)
    pads = pads if isinstance(pads, str) else everywhere(pads, (0, 0))

    def init(rng: Any, input_shape: Any) -> tuple[Any, Any]:
        each = [pads] * len(window) if isinstance(pads, str) else pads
        sizes = zip(spec, input_shape, window, steps, each, strict=True)
        return tuple(n if c in "NC" else _length(n, *rest) for c, n, *rest in sizes), ()

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Array:
        first = np.asarray(start, inputs.dtype)
        found = reduce_window(inputs, first, reducer, window, steps, pads)
        return rescaled(found, inputs, window, steps, pads) if rescaled else found

    return Layer(init, apply)


def MaxPool(  # noqa: N802
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    spec: str | None = None,
) -> Layer:
    """The largest element of each window.

    Args:
        window_shape: the size of a window, without batch and features.
        strides: from one window to the next; 1 where absent.
        padding: "SAME", "VALID", or a pair for each dimension of the window.
        spec: what the dimensions of the inputs are, such as "NHWC", the default for images.

    Raises:
        ValueError: the padding is unknown.

    Example:
        >>> from minijax.example_libraries import stax
        >>> init, apply = stax.MaxPool((2,), strides=(2,))
        >>> apply((), jnp.array([1.0, 3.0, 2.0, 0.0]).reshape(1, 4, 1)).ravel()
        Array([3., 2.], dtype=float32)
    """
    return _pooling("MaxPool", greater, -math.inf, None, (window_shape, strides, padding, spec))


def SumPool(  # noqa: N802
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    spec: str | None = None,
) -> Layer:
    """The sum of each window; the arguments are those of `MaxPool`.

    Raises:
        ValueError: the padding is unknown.

    Example:
        >>> from minijax.example_libraries import stax
        >>> init, apply = stax.SumPool((2,), strides=(2,))
        >>> apply((), jnp.array([1.0, 3.0, 2.0, 0.0]).reshape(1, 4, 1)).ravel()
        Array([4., 2.], dtype=float32)
    """
    return _pooling("SumPool", add, 0.0, None, (window_shape, strides, padding, spec))


def _by_counts(sums: Array, inputs: Array, window: Any, steps: Any, padding: Padding) -> Array:
    first = np.asarray(0, inputs.dtype)
    return sums / reduce_window(ones_like(inputs), first, add, window, steps, padding)


def AvgPool(  # noqa: N802
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    spec: str | None = None,
) -> Layer:
    """The mean of each window, padding not counted; the arguments are those of `MaxPool`.

    Raises:
        ValueError: the padding is unknown.

    Example:
        >>> from minijax.example_libraries import stax
        >>> init, apply = stax.AvgPool((2,), strides=(2,))
        >>> apply((), jnp.array([1.0, 3.0, 2.0, 0.0]).reshape(1, 4, 1)).ravel()
        Array([2., 1.], dtype=float32)
    """
    return _pooling("AvgPool", add, 0.0, _by_counts, (window_shape, strides, padding, spec))


Identity = Layer(
    lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: inputs
)

Flatten = Layer(
    lambda rng, input_shape: ((input_shape[0], math.prod(input_shape[1:])), ()),
    lambda params, inputs, **kwargs: reshape(inputs, (inputs.shape[0], -1)),
)


def FanOut(num: int) -> Layer:  # noqa: N802
    """The inputs `num` times, as a list, for `parallel`.

    Example:
        >>> from minijax.example_libraries import stax
        >>> init, apply = stax.FanOut(2)
        >>> init(jax.random.key(0), (3,))
        ([(3,), (3,)], ())
    """
    return Layer(
        lambda rng, input_shape: ([input_shape] * num, ()),
        lambda params, inputs, **kwargs: [inputs] * num,
    )


def _sum_of(params: Any, inputs: Any, **kwargs: Any) -> Array:
    return sum(inputs[1:], inputs[0])


FanInSum = Layer(lambda rng, input_shape: (input_shape[0], ()), _sum_of)


def FanInConcat(axis: int = -1) -> Layer:  # noqa: N802
    """Joins several inputs along a dimension.

    Example:
        >>> from minijax.example_libraries import stax
        >>> init, apply = stax.FanInConcat()
        >>> init(jax.random.key(0), [(-1, 3), (-1, 4)])[0]
        (-1, 7)
    """

    def init(rng: Any, input_shape: Any) -> tuple[Any, Any]:
        joined = list(input_shape[0])
        joined[axis] = sum(shape[axis] for shape in input_shape)
        return tuple(joined), ()

    return Layer(init, lambda params, inputs, **kwargs: concatenate(inputs, axis))


def Dropout(rate: float, mode: str = "train") -> Layer:  # noqa: N802
    """Keeps each element with probability `rate`, divided by that, and sets the others to zero.

    Args:
        rate: the probability with which an element stays.
        mode: "train"; in any other mode nothing is dropped.

    Raises:
        ValueError: it is applied in training without a key, `rng=`.

    Example:
        >>> from minijax.example_libraries import stax
        >>> init, apply = stax.Dropout(0.5)
        >>> dropped = apply((), jnp.ones(1000), rng=jax.random.key(0))
        >>> sorted(set(dropped.tolist()))
        [0.0, 2.0]
    """

    def apply(params: Any, inputs: Any, rng: Any = None, **kwargs: Any) -> Array:
        if mode != "train":
            return inputs
        if rng is None:
            problem = "which elements are dropped is random, and there is no key."
            fix = "apply_fun(params, inputs, rng=key), or mode='test'"
            error(ValueError, f"{_NAME}.Dropout", problem, got={"rng": rng}, fix=fix)
        return where(bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return Layer(lambda rng, input_shape: (input_shape, ()), apply)


def _checked(name: str, layers: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The functions `init_fun` and the functions `apply_fun` of layers."""
    for i, layer in enumerate(layers):
        is_pair = isinstance(layer, (tuple, list)) and len(layer) == 2
        if not is_pair or not all(map(callable, layer)):
            problem = f"layer {i} is no pair of functions (init_fun, apply_fun)."
            fix = "the layer itself where a list of layers is given, or its call where it has one"
            error(TypeError, f"{_NAME}.{name}", problem, got=repr(layer), fix=fix)
    return tuple(layer[0] for layer in layers), tuple(layer[1] for layer in layers)


def _keys(rng: Any, count: int) -> list[Any]:
    return [None] * count if rng is None else list(split(rng, count))


def serial(*layers: Any) -> Layer:
    """Layers one after the other; the parameters are a list with those of each.

    Raises:
        TypeError: an argument is no layer.

    Example:
        >>> from minijax.example_libraries import stax
        >>> init, apply = stax.serial(stax.Dense(8), stax.Relu, stax.Dense(2))
        >>> shape, params = init(jax.random.key(0), (-1, 4))
        >>> apply(params, jnp.ones((5, 4))).shape
        (5, 2)
    """
    inits, applies = _checked("serial", layers)

    def init(rng: Any, input_shape: Any) -> tuple[Any, Any]:
        params = []
        for one in inits:
            rng, of_layer = split(rng)
            input_shape, param = one(of_layer, input_shape)
            params.append(param)
        return input_shape, params

    def apply(params: Any, inputs: Any, rng: Any = None, **kwargs: Any) -> Any:
        keys = _keys(rng, len(applies))
        for one, param, key in zip(applies, params, keys, strict=True):
            inputs = one(param, inputs, rng=key, **kwargs)
        return inputs

    return Layer(init, apply)


def parallel(*layers: Any) -> Layer:
    """Layers side by side: the inputs, outputs and parameters are lists with those of each.

    Raises:
        TypeError: an argument is no layer.

    Example:
        >>> from minijax.example_libraries import stax
        >>> fork = stax.FanOut(2), stax.parallel(stax.Dense(3), stax.Identity), stax.FanInSum
        >>> init, apply = stax.serial(*fork)
        >>> init(jax.random.key(0), (-1, 3))[0]
        (-1, 3)
    """
    inits, applies = _checked("parallel", layers)

    def init(rng: Any, input_shape: Any) -> tuple[Any, Any]:
        keys = split(rng, len(inits))
        found = [one(k, s) for one, k, s in zip(inits, keys, input_shape, strict=True)]
        return [shape for shape, _ in found], [params for _, params in found]

    def apply(params: Any, inputs: Any, rng: Any = None, **kwargs: Any) -> Any:
        each = zip(applies, params, inputs, _keys(rng, len(applies)), strict=True)
        return [one(param, x, rng=key, **kwargs) for one, param, x, key in each]

    return Layer(init, apply)


def shape_dependent(make_layer: Callable[[Any], Any]) -> Layer:
    """A layer that is made when the shape of its inputs is known: `make_layer(input_shape)`.

    Example:
        >>> from minijax.example_libraries import stax
        >>> init, apply = stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1]))
        >>> init(jax.random.key(0), (-1, 3))[0]
        (-1, 6)
    """
    return Layer(
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )
