from minijax.explain.display.terminal import show as show
from minijax.explain.communication import (
    Collective as Collective,
    Collectives as Collectives,
    collectives as collectives,
)
from minijax.explain.differences import Cause as Cause, Change as Change
from minijax.explain.pipeline import Stages as Stages, stages as stages
from minijax.explain.plans import (
    Plan as Plan,
    PlannedCollective as PlannedCollective,
    PlannedValue as PlannedValue,
    plan as plan,
)
from minijax.explain.report import (
    Report as Report,
    Retrace as Retrace,
    no_retrace as no_retrace,
    retraces as retraces,
)
from minijax.explain.pages.comparing import (
    Choice as Choice,
    Comparison as Comparison,
    compare as compare,
)
from minijax.explain.pages.derivatives import Derivative as Derivative, derivative as derivative
from minijax.explain.pages.making import Page as Page, page as page
from minijax.explain.xla.fusions import Fusions as Fusions, Kernel as Kernel, fusions as fusions
from minijax.explain.xla.memory import Memory as Memory, Value as Value, memory as memory
from minijax.explain.xla.profiles import (
    Call as Call,
    KernelTime as KernelTime,
    Profile as Profile,
    profile as profile,
)
