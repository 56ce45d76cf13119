"""Functions that users partition.  Mirrors jax.experimental.custom_partitioning."""

from minijax.core import deferral
from minijax.experimental.custom_partitioning.partitioning import (
    custom_partitioning as custom_partitioning,
    custom_partitioning_p as custom_partitioning_p,
)
from minijax.experimental.custom_partitioning.sharding_rules import (
    BATCHING as BATCHING,
    ArrayMapping as ArrayMapping,
    CompoundFactor as CompoundFactor,
    SdyShardingRule as SdyShardingRule,
)

deferral.publish(globals())
