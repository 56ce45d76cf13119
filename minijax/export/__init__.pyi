from minijax.export.checks import DisabledSafetyCheck as DisabledSafetyCheck
from minijax.export.exported import Exported as Exported
from minijax.export.exporting import (
    default_export_platform as default_export_platform,
    export as export,
    maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
)
from minijax.export.files import deserialize as deserialize
from minijax.export.scopes import SymbolicScope as SymbolicScope
from minijax.export.symbols import (
    is_symbolic_dim as is_symbolic_dim,
    symbolic_args_specs as symbolic_args_specs,
    symbolic_shape as symbolic_shape,
)
from minijax.export.trees import (
    register_namedtuple_serialization as register_namedtuple_serialization,
    register_pytree_node_serialization as register_pytree_node_serialization,
)
