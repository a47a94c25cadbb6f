"""`torch.distributed` before several processes work together: what a program asks first.

One process is rank 0 of 1. Whatever would talk to another process is refused.
"""

from __future__ import annotations

from typing import Any

from flambeau.core.absence import refused_names
from flambeau.core.nearest import missing_name


def is_available() -> bool:
    """Can processes work together? Not yet."""
    return False


def is_initialized() -> bool:
    """Has a process group been made? No."""
    return False


is_mpi_available = is_nccl_available = is_gloo_available = is_available
is_ucc_available = is_xccl_available = is_torchelastic_launched = is_available


def get_rank(group: Any = None) -> int:
    """This process's number: 0."""
    return 0


def get_world_size(group: Any = None) -> int:
    """How many processes there are: 1."""
    return 1


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's number on its machine: 0."""
    return 0


def destroy_process_group(group: Any = None) -> None:
    """Nothing: there is no group."""


globals().update(
    refused_names(
        "distributed",
        """all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all
        all_to_all_single barrier broadcast broadcast_object_list gather gather_object
        get_backend init_device_mesh init_process_group irecv isend monitored_barrier new_group
        recv reduce reduce_scatter reduce_scatter_tensor scatter scatter_object_list send
        FileStore HashStore TCPStore""",
        "processes cannot work together yet",
        "Run one process; `distributed.is_available()` is False.",
    )
)


class ReduceOp:
    """How values of several processes are combined."""

    SUM, AVG, PRODUCT, MIN, MAX = "sum", "avg", "product", "min", "max"
    BAND, BOR, BXOR, PREMUL_SUM = "band", "bor", "bxor", "premul_sum"


class ProcessGroup:
    """Processes that work together: a class for annotations, there are none."""


class group:
    """The default group: none."""

    WORLD: ProcessGroup | None = None


__getattr__ = missing_name(__name__)
