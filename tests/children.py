"""Programs in processes of their own: for what may end a process, or hang."""

import os
import subprocess
import sys


def run(*command: str, devices: int, timeout: float) -> subprocess.CompletedProcess[str]:
    """Runs Python on so many devices, with the paths of this process."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "XLA_FLAGS": flags}
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        env=environment,
    )
