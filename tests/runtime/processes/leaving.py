"""Two processes, the second of which fails while the first goes on to its end."""

import minijax as jax
from tests.runtime.processes.part import take_part


def facts() -> dict[str, int]:
    """What process 0 reports."""
    if jax.process_index() == 1:
        raise ValueError("this process has failed")
    return {"devices": jax.device_count()}


if __name__ == "__main__":
    take_part(facts)
