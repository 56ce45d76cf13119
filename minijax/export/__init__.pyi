from minijax.export.exported import (
    DisabledSafetyCheck as DisabledSafetyCheck,
    Exported as Exported,
)
from minijax.export.exporting import (
    default_export_platform as default_export_platform,
    export as export,
    maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
)
from minijax.export.files import deserialize as deserialize
from minijax.export.symbols import (
    SymbolicScope as SymbolicScope,
    is_symbolic_dim as is_symbolic_dim,
    symbolic_args_specs as symbolic_args_specs,
    symbolic_shape as symbolic_shape,
)
from minijax.export.trees import (
    register_namedtuple_serialization as register_namedtuple_serialization,
    register_pytree_node_serialization as register_pytree_node_serialization,
)
