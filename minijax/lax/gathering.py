from minijax.lax.gather_numbers import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from minijax.lax.gather_scatter import gather, gather_p
