from minijax.explain.communication import assert_collectives as assert_collectives
from minijax.explain.pages.exercises import Exercise as Exercise, exercise as exercise
from minijax.testing import laws as laws, pictures as pictures, strategies as strategies
from minijax.testing.exchanges import CollectiveMismatch as CollectiveMismatch
from minijax.testing.interpreter import interpreted as interpreted
from minijax.testing.oracle import (
    simulate as simulate,
    simulate_devices as simulate_devices,
    simulate_program as simulate_program,
)
from minijax.testing.strategies.arguments import given_mesh as given_mesh
