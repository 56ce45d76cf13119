"""The parent's side of a worker: starting it, asking it, and noticing when it dies."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PATIENCE = 300.0
"""Seconds after which an answer is no longer waited for."""


def environment(programs: str | None = None) -> dict[str, str]:
    """The variables of a measured process: its Python keeps bytecode, as an installed one does.

    Args:
        programs: the folder of compiled programs that it uses; by default none.
    """
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    # JAX has no folder unless it is given one, and what it is told shows among its settings.
    kept["MINIJAX_ENABLE_COMPILATION_CACHE"] = "0" if programs is None else "1"
    kept.pop("JAX_COMPILATION_CACHE_DIR", None)
    if programs is not None:
        for prefix in ("MINIJAX", "JAX"):
            kept[f"{prefix}_COMPILATION_CACHE_DIR"] = programs
            kept[f"{prefix}_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    return kept


class WorkerError(RuntimeError):
    """A worker answered with an error, died, or did not answer."""


class RemoteWorker:
    """One library in a process of its own; started when first asked, and again after it died."""

    def __init__(
        self, python: str, library: str, devices: int = 1, patience: float = PATIENCE
    ) -> None:
        self.python = python
        self.library = library
        self.devices = devices
        self.patience = patience
        self._process: subprocess.Popen[str] | None = None
        # Open as long as the worker lives, which no `with` could span.
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115

    def ask(self, what: str, **details: Any) -> dict[str, Any]:
        """The answer to one request."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"do": what, **details}) + "\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], self.patience)
            line = process.stdout.readline() if ready else ""
        except BrokenPipeError:
            line = ""
        if not line:
            self.close()
            raise WorkerError(f"The {self.library} worker gave no answer.\n{self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["trace"])
        return answer

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._log.truncate(0)
            self._process = subprocess.Popen(
                [self.python, str(FOLDER / "worker.py"), self.library, str(self.devices)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                encoding="utf-8",
                env=environment(),
            )
        return self._process

    def _last_words(self) -> str:
        self._log.seek(0)
        return self._log.read()[-2000:]
