"""Networks as pairs of functions.  Mirrors jax.example_libraries.stax."""

import minijax.nn.initializers
import minijax.numpy.normalized_exponentials
from minijax.core import deferral
from minijax.experimental.example_libraries.networks import (
    AvgPool as AvgPool,
    BatchNorm as BatchNorm,
    Conv as Conv,
    Conv1DTranspose as Conv1DTranspose,
    ConvTranspose as ConvTranspose,
    Dense as Dense,
    Dropout as Dropout,
    Elu as Elu,
    Exp as Exp,
    FanInConcat as FanInConcat,
    FanInSum as FanInSum,
    FanOut as FanOut,
    Flatten as Flatten,
    Gelu as Gelu,
    GeneralConv as GeneralConv,
    GeneralConvTranspose as GeneralConvTranspose,
    Identity as Identity,
    Layer as Layer,
    LeakyRelu as LeakyRelu,
    LogSoftmax as LogSoftmax,
    MaxPool as MaxPool,
    Relu as Relu,
    Selu as Selu,
    Sigmoid as Sigmoid,
    Softmax as Softmax,
    Softplus as Softplus,
    SumPool as SumPool,
    Tanh as Tanh,
    elementwise as elementwise,
    parallel as parallel,
    serial as serial,
    shape_dependent as shape_dependent,
)
from minijax.nn.activations import (
    elu as elu,
    gelu as gelu,
    leaky_relu as leaky_relu,
    relu as relu,
    selu as selu,
    sigmoid as sigmoid,
    softplus as softplus,
    standardize as standardize,
)
from minijax.nn.initializers import (
    glorot_normal as glorot_normal,
    normal as normal,
    ones as ones,
    zeros as zeros,
)
from minijax.numpy.normalized_exponentials import log_softmax as log_softmax, softmax as softmax

glorot = minijax.nn.initializers.glorot_normal
logsoftmax = minijax.numpy.normalized_exponentials.log_softmax
randn = minijax.nn.initializers.normal

deferral.publish(globals())
