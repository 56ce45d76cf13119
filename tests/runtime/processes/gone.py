"""Processes of which one goes: `python -m tests.runtime.processes.gone REPORT CASE NUMBER`."""

import ctypes
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import minijax as jax
from minijax import lax
from minijax.runtime.processes import watch
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P
from tests.runtime.processes.part import refusal, take_part


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stopped() -> None:
    subprocess.Popen(["sh", "-c", f"sleep 7; kill -CONT {os.getpid()}"])
    os.kill(os.getpid(), signal.SIGSTOP)


def exited() -> None:
    os._exit(3)


def failed() -> None:
    raise ValueError("this process has failed")


def aborted() -> None:
    """Ends as XLA ends a process, but not without its last words."""
    jax.distributed.on_failure(lambda: os.write(1, b"the last words\n"))
    os.abort()


def left() -> None:
    sys.exit(3)


def away() -> None:
    """Is long in coming, and lives, though no other thread of it can say so."""
    ctypes.PyDLL(None).sleep(6)


def facts() -> dict[str, Any]:
    ways = killed, stopped, exited, aborted, failed, left, away
    go = {each.__name__: each for each in ways}[sys.argv[2]]
    goes = jax.process_index() == int(sys.argv[3])
    mesh = Mesh(np.array(jax.devices()), "x")
    split = NamedSharding(mesh, P("x"))
    x = jax.device_put(np.arange(24, dtype=np.float32), split)

    @jax.jit
    def step(x: Any) -> Any:
        mean = jax.shard_map(
            lambda x: x + lax.pmean(x.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x")
        )
        return mean(x), (x * x).sum()

    def train(x: Any) -> None:
        for number in range(10_000):
            x, loss = step(x)
            if number == 50 and go is away and not goes:
                watch._SECONDS_TO_WARN = 2.0
                threading.Timer(4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            if goes and number == 50:
                Path(sys.argv[1]).write_text(json.dumps({"gone": time.time()}), encoding="utf-8")
                go()
            float(loss)

    if goes:
        train(x)
    error = refusal(lambda: train(x))
    told = time.time()
    saved = io.BytesIO()
    np.save(saved, x.addressable_shards[0].data)
    own = float(jax.jit(lambda x: (x @ x).sum())(np.ones((64, 64), np.float32)))
    return {
        "error": error,
        "told": told,
        "again": refusal(lambda: step(x)),
        "own": own,
        "saved": np.load(io.BytesIO(saved.getvalue())).tolist(),
    }


if __name__ == "__main__":
    take_part(facts)
