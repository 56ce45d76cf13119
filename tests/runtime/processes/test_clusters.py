"""`initialize` reads what launchers say: each is tested with the variables that it sets."""

from __future__ import annotations

import io
import json
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import minijax as jax
from minijax.runtime.processes import clusters

pytestmark = pytest.mark.feature("EC-07")

SLURM = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "node[007-009,12]",
    "SLURM_NTASKS": "8",
    "SLURM_PROCID": "3",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,172.17.0.1:34911",
}
OPEN_MPI_5 = {
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_NAMESPACE": "prterun-head-node-1234@1",
}
OPEN_MPI_HERE = {**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
HYDRA = {"PMI_SIZE": "2", "PMI_RANK": "1", "MPI_LOCALNRANKS": "2"}
HYDRA_OVER_HOSTS = {**HYDRA, "MPI_LOCALNRANKS": "1", "PMI_PORT": "head:40000"}
TORCHRUN = {
    "MASTER_ADDR": "first",
    "MASTER_PORT": "29500",
    "WORLD_SIZE": "4",
    "RANK": "2",
    "LOCAL_RANK": "0",
}
KUBERNETES = {"JOB_COMPLETION_INDEX": "2", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}

FOUND = {
    "slurm": (SLURM, "node007", 8, 3),
    "slurm, fewer tasks": ({**SLURM, "SLURM_STEP_NUM_TASKS": "4"}, "node007", 4, 3),
    "ompi": (OPEN_MPI, "10.96.0.1", 4, 1),
    "ompi 5": (OPEN_MPI_5, "head-node", 4, 1),
    "ompi, one host": (OPEN_MPI_HERE, "localhost", 4, 1),
    "hydra": (HYDRA, "localhost", 2, 1),
    "hydra, hosts": (HYDRA_OVER_HOSTS, "head", 2, 1),
    "torchrun": (TORCHRUN, "first", 4, 2),
    "torchrun, IPv6": ({**TORCHRUN, "MASTER_ADDR": "fe80::1"}, "[fe80::1]", 4, 2),
}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No launcher has started the tests, whoever has."""
    names = {name for cluster in clusters.CLUSTERS for name in cluster.variables}
    others = ("TORCHELASTIC_USE_AGENT_STORE", "SLURM_STEP_NUM_TASKS", "PMI_PORT", "PMIX_NAMESPACE")
    for name in (*names, *others, *(x for x in os.environ if x.startswith(("OMPI_", "MINIJAX_P")))):
        monkeypatch.delenv(name, raising=False)


def set_all(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("case", FOUND)
def test_launchers_say_who_takes_part(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variables, host, processes, process = FOUND[case]
    set_all(monkeypatch, variables)
    found = clusters.found(None)

    assert found is not None
    assert found.coordinator_address.rpartition(":")[0] == host
    assert found.num_processes == processes
    assert found.process_id == process
    assert clusters.found(case.partition(",")[0].split()[0]) == found


@pytest.mark.parametrize(
    ("variables", "rank"),
    [
        (SLURM, "SLURM_PROCID"),
        (OPEN_MPI, "OMPI_COMM_WORLD_RANK"),
        (HYDRA, "PMI_RANK"),
        (TORCHRUN, "RANK"),
    ],
)
def test_all_processes_find_one_port(
    variables: Mapping[str, str], rank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for number in "01":
        set_all(monkeypatch, {**variables, rank: number})
        found.append(clusters.found(None))

    assert found[0] is not None
    assert found[1] is not None
    assert found[0].coordinator_address == found[1].coordinator_address
    assert [x.process_id for x in found if x] == [0, 1]


def test_jobs_have_ports_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for job in ("4711", "4712"):
        set_all(monkeypatch, {**SLURM, "SLURM_JOB_ID": job})
        found.add(clusters.found("slurm"))
    assert len(found) == 2


def test_a_port_at_which_torchrun_listens_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, TORCHRUN)
    direct = clusters.found("torchrun")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    beside = clusters.found("torchrun")

    assert direct is not None
    assert beside is not None
    assert direct.coordinator_address == "first:29500"
    assert beside.coordinator_address != "first:29500"


@pytest.mark.parametrize(
    ("names", "host"),
    [
        ("one", "one"),
        ("one,two", "one"),
        ("node[1-3]", "node1"),
        ("node[03,5-7],other", "node03"),
        ("rack2-n[10-12]-ib,x", "rack2-n10-ib"),
        ("first,node[1-3]", "first"),
    ],
)
def test_slurm_s_lists_of_hosts(names: str, host: str) -> None:
    assert clusters.first_host(names) == host


class Answer(io.BytesIO):
    """What the server of Kubernetes says about the job."""


def test_kubernetes_is_asked_for_the_number_of_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def urlopen(request: Any, **_: Any) -> Answer:
        asked.append(request)
        return Answer(json.dumps({"spec": {"completions": 5}}).encode())

    set_all(monkeypatch, KUBERNETES)
    for name in ("namespace", "token"):
        (tmp_path / name).write_text(f"the-{name}\n", encoding="utf-8")
    monkeypatch.setattr(clusters, "_SECRETS", tmp_path)
    monkeypatch.setattr(
        clusters, "ssl", SimpleNamespace(create_default_context=lambda cafile: cafile)
    )
    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    monkeypatch.setattr(socket, "getfqdn", lambda: "train-2.mesh.space.svc.cluster.local")
    found = clusters.found(None)

    assert found is not None
    assert found.coordinator_address.rpartition(":")[0] == "train-0.mesh.space.svc.cluster.local"
    assert (found.num_processes, found.process_id) == (5, 2)
    assert asked[0].full_url.endswith(
        "10.0.0.1:443/apis/batch/v1/namespaces/the-namespace/jobs/train"
    )
    assert asked[0].get_header("Authorization") == "Bearer the-token"


def test_kubernetes_that_does_not_answer_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_all(monkeypatch, KUBERNETES)
    monkeypatch.setattr(clusters, "_SECRETS", tmp_path)
    with pytest.raises(RuntimeError, match="Kubernetes does not tell how many pods the job has"):
        clusters.found(None)


def test_mpi4py_is_asked_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SimpleNamespace(
        Get_size=lambda: 2, Get_rank=lambda: 1, bcast=lambda own, root: f"root-of-{own}"
    )
    module = ModuleType("mpi4py.MPI")
    module.COMM_WORLD = world  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mpi4py", ModuleType("mpi4py"))
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", module)
    found = clusters.found("mpi4py")

    assert clusters.found(None) is None
    assert found is not None
    assert found[1:] == (2, 1)
    assert found.coordinator_address.startswith(f"root-of-{socket.gethostname()}:")


@pytest.mark.parametrize("variables", [OPEN_MPI, HYDRA_OVER_HOSTS])
def test_launchers_over_hosts_that_do_not_name_theirs(
    variables: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {k: v for k, v in variables.items() if k not in ("OMPI_MCA_orte_hnp_uri", "PMI_PORT")}
    set_all(monkeypatch, known)
    with pytest.raises(ValueError, match="does not tell on which host process 0 is"):
        clusters.found(None)


def test_what_is_no_number_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {**TORCHRUN, "WORLD_SIZE": "many"})
    with pytest.raises(ValueError, match="WORLD_SIZE is no number"):
        clusters.found(None)


def test_initialize_takes_what_is_omitted_from_the_launcher(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_all(monkeypatch, TORCHRUN)
    with pytest.raises(ValueError, match="process_id=2, num_processes=2"):
        jax.distributed.initialize(num_processes=2)
    monkeypatch.setenv("MINIJAX_PROCESS_ID", "7")
    with pytest.raises(ValueError, match="process_id=7, num_processes=4"):
        jax.distributed.initialize()
    with pytest.raises(ValueError, match="coordinator_address is needed"):
        jax.distributed.initialize(cluster_detection_method="deactivate")


def test_methods_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="'slurm', 'ompi', 'hydra', 'k8s', 'torchrun', 'mpi4py'"):
        jax.distributed.initialize(cluster_detection_method="mpi")
    with pytest.raises(ValueError, match="slurm has not started this process"):
        jax.distributed.initialize(cluster_detection_method="slurm")


def test_without_a_launcher_the_error_says_how_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"python -m minijax\.distributed -n 2"):
        jax.distributed.initialize()
