"""Who started this process, and what that says about the others: schedulers and launchers.

Input: the variables that they set.  Output: where process 0 is to be reached, how many processes
there are, and which this is.  Nobody is asked over a network, except the server of Kubernetes.
"""

from __future__ import annotations

import os
import re
import socket
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from minijax.core import deferral
from minijax.core.errors import error

json = deferral.module("json")
ssl = deferral.module("ssl")
urllib_request = deferral.module("urllib.request")

_INITIALIZE = "distributed.initialize"
_FIRST_PORT, _PORTS = 61440, 4096
"""Ports that systems do not give out by themselves."""

_SECRETS = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECONDS_TO_ASK = 10


class Member(NamedTuple):
    """A process among others.

    Attributes:
        coordinator_address: where process 0 is reached.
        num_processes: how many there are.
        process_id: the number of this one.
    """

    coordinator_address: str
    num_processes: int
    process_id: int


class Cluster(NamedTuple):
    """A way to start many processes.

    Attributes:
        name: what `cluster_detection_method` calls it.
        variables: what it sets; where all of them are, this process was started so.
        member: reads the others.
        is_asked_for: whether it counts only where it is named.
    """

    name: str
    variables: tuple[str, ...]
    member: Callable[[], Member]
    is_asked_for: bool = False

    @property
    def missing(self) -> list[str]:
        """What is not set."""
        return [name for name in self.variables if name not in os.environ]


def found(method: str | None) -> Member | None:
    """What the launcher of this process says; None where none is known.

    Args:
        method: the name of a cluster; None for any.

    Raises:
        ValueError: this cluster has not started this process, or does not say enough.
    """
    for cluster in CLUSTERS:
        if method is None and not cluster.is_asked_for and not cluster.missing:
            return cluster.member()
        if method == cluster.name:
            if cluster.missing:
                problem = f"{method} has not started this process."
                got = f"{', '.join(cluster.missing)} not set"
                fix = "let it start the program, or pass the three numbers"
                error(ValueError, _INITIALIZE, problem, got=got, fix=fix)
            return cluster.member()
    return None


def check_method(method: object) -> None:
    """Refuses what is no `cluster_detection_method`.

    Raises:
        ValueError: it is none.
    """
    if method not in (None, "deactivate", *(x.name for x in CLUSTERS)):
        error(
            ValueError,
            _INITIALIZE,
            "there is no such way to find the other processes.",
            got=f"cluster_detection_method={method!r}",
            expected="None, 'deactivate', " + ", ".join(repr(x.name) for x in CLUSTERS),
        )


def _port(job: str) -> int:
    """A port for a job: the same in all its processes, and most often another for other jobs."""
    return _FIRST_PORT + zlib.crc32(job.encode()) % _PORTS


def _number(variable: str) -> int:
    text = os.environ[variable]
    if not text.isdecimal():
        problem = f"{variable} is no number."
        error(ValueError, _INITIALIZE, problem, got=repr(text), fix="let its launcher set it")
    return int(text)


def _slurm() -> Member:
    env = os.environ
    job = f"{env['SLURM_JOB_ID']}.{env.get('SLURM_STEP_ID', '0')}"
    of_step = "SLURM_STEP_NUM_TASKS"
    tasks = _number(of_step if of_step in env else "SLURM_NTASKS")
    host = first_host(env["SLURM_STEP_NODELIST"])
    return Member(f"{host}:{_port(job)}", tasks, _number("SLURM_PROCID"))


def first_host(names: str) -> str:
    """The first of Slurm's list of hosts, such as `node[007-009,12],other`."""
    head, bracket, rest = names.partition("[")
    if not bracket or "," in head:
        return head.partition(",")[0]
    number, _, tail = rest.partition("]")
    return head + re.split("[-,]", number, maxsplit=1)[0] + tail.partition(",")[0]


def _open_mpi() -> Member:
    env = os.environ
    size, rank = _number("OMPI_COMM_WORLD_SIZE"), _number("OMPI_COMM_WORLD_RANK")
    # "1531576320.0;tcp://10.0.0.1,172.17.0.1:34911" in releases 2 to 4, "prterun-host-123@1" in 5.
    launcher = env.get("OMPI_MCA_orte_hnp_uri", "")
    space = env.get("PMIX_NAMESPACE", "")
    job = (launcher.partition(";")[0] or space.rpartition("@")[0]) or str(os.getppid())
    host = "localhost"
    if env.get("OMPI_COMM_WORLD_LOCAL_SIZE") != str(size):
        tcp = re.search(r"tcp://\[?([\w.:]+?)\]?[,:]", launcher)
        named = re.fullmatch(r"\w+-(.+)-\d+@\d+", space)
        host = _launcher_host("Open MPI", tcp or named)
    return Member(f"{host}:{_port(job)}", size, rank)


def _hydra() -> Member:
    """MPICH, Intel MPI and others that are started by Hydra."""
    env = os.environ
    size, rank = _number("PMI_SIZE"), _number("PMI_RANK")
    launcher = env.get("PMI_PORT", "")
    host = "localhost"
    if env.get("MPI_LOCALNRANKS") != str(size):
        host = _launcher_host("Hydra", re.fullmatch(r"(.+):\d+", launcher))
    return Member(f"{host}:{_port(launcher or str(os.getppid()))}", size, rank)


def _launcher_host(launcher: str, match: re.Match[str] | None) -> str:
    """The host of the launcher, where process 0 is unless the user has chosen others."""
    if match is None:
        problem = f"{launcher} does not tell on which host process 0 is."
        fix = "pass coordinator_address, or set MINIJAX_COORDINATOR_ADDRESS"
        error(ValueError, _INITIALIZE, problem, fix=fix)
    return match.group(1)


def _torchrun() -> Member:
    env = os.environ
    port = _number("MASTER_PORT")
    if env.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        # The launcher itself listens at that port.
        port = _port(f"{env['MASTER_PORT']} {env.get('TORCHELASTIC_RUN_ID', '')}")
    host = env["MASTER_ADDR"]
    host = f"[{host}]" if ":" in host else host
    return Member(f"{host}:{port}", _number("WORLD_SIZE"), _number("RANK"))


def _kubernetes() -> Member:
    """Of an indexed job whose pods have a subdomain, so that they find one another by name."""
    index = _number("JOB_COMPLETION_INDEX")
    name, _, domain = socket.getfqdn().partition(".")
    job = name.removesuffix(f"-{index}")
    facts = _asked_of_kubernetes(f"jobs/{job}")
    host = f"{job}-0.{domain}" if domain else f"{job}-0"
    completions = int(facts["spec"]["completions"])
    return Member(f"{host}:{_port(job)}", completions, index)


def _asked_of_kubernetes(what: str) -> Any:
    """What the server of Kubernetes says about a part of the namespace of this pod."""
    env = os.environ
    server = f"{env['KUBERNETES_SERVICE_HOST']}:{env.get('KUBERNETES_SERVICE_PORT', '443')}"
    try:
        space, token = (
            (_SECRETS / x).read_text(encoding="utf-8").strip() for x in ("namespace", "token")
        )
        context = ssl.create_default_context(cafile=str(_SECRETS / "ca.crt"))
        asked = urllib_request.Request(
            f"https://{server}/apis/batch/v1/namespaces/{space}/{what}",
            headers={"Authorization": f"Bearer {token}"},
        )
        with urllib_request.urlopen(asked, timeout=_SECONDS_TO_ASK, context=context) as answer:
            return json.load(answer)
    except (OSError, ValueError) as caught:
        problem = "Kubernetes does not tell how many pods the job has."
        fix = "let the service account of the pods get jobs, or set MINIJAX_NUM_PROCESSES"
        error(RuntimeError, _INITIALIZE, problem, got=str(caught), fix=fix, cause=caught)


def _mpi4py() -> Member:
    """Of any MPI, by its own means."""
    world = deferral.module("mpi4py.MPI").COMM_WORLD
    size, rank = world.Get_size(), world.Get_rank()
    own = f"{socket.gethostname()}:{_port(f'{socket.gethostname()} {os.getpid()}')}"
    return Member(world.bcast(own, root=0), size, rank)


CLUSTERS = (
    Cluster(
        "slurm",
        ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID"),
        _slurm,
    ),
    Cluster("ompi", ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), _open_mpi),
    Cluster("hydra", ("PMI_SIZE", "PMI_RANK"), _hydra),
    Cluster("k8s", ("JOB_COMPLETION_INDEX", "KUBERNETES_SERVICE_HOST"), _kubernetes),
    Cluster("torchrun", ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"), _torchrun),
    Cluster("mpi4py", (), _mpi4py, is_asked_for=True),
)
"""The ways, in the order in which they are tried."""
