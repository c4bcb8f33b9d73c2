"""`torch.distributed`: groups of one process, in which nothing has to be sent.

Programs for several processes also run as one: `init_process_group(rank=0, world_size=1)`, or as
the only process of a launcher. Larger groups are refused.
"""

from __future__ import annotations

import copy
import os
from enum import Enum
from typing import Any

from .tracer.modes import no_grad

_UNSET = ("Default process group has not been initialized, please make sure to call "
          "init_process_group.")  # fmt: skip
_ADDRESS = ("MASTER_ADDR", "MASTER_PORT")


class ReduceOp:
    """How results of processes are joined; of one process they are what they are."""

    class RedOpType(Enum):
        """The ways."""

        SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)

        def __str__(self) -> str:
            return f"RedOpType.{self.name}"

    SUM, AVG, PRODUCT = RedOpType.SUM, RedOpType.AVG, RedOpType.PRODUCT
    MIN, MAX = RedOpType.MIN, RedOpType.MAX
    BAND, BOR, BXOR = RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR


class Backend(str):
    """The names of ways to communicate."""

    UNDEFINED, GLOO, NCCL, UCC, MPI = "undefined", "gloo", "nccl", "ucc", "mpi"


class ProcessGroup:
    """A group of one process."""

    def __init__(self, backend: str):
        self.backend = backend

    def rank(self) -> int:
        """0."""
        return 0

    def size(self) -> int:
        """1."""
        return 1

    def name(self) -> str:
        """What it communicates by."""
        return self.backend


class Work:
    """What `async_op=True` gives: it is done."""

    def wait(self, timeout: Any = None) -> bool:
        """True."""
        return True

    def is_completed(self) -> bool:
        """True."""
        return True

    is_success = is_completed


class _GroupMeta(type):
    WORLD = property(lambda cls: GroupMember.WORLD)


class GroupMember:
    """`GroupMember.WORLD`: the group of all processes, once there is one."""

    WORLD: ProcessGroup | None = None


class group(metaclass=_GroupMeta):
    """`group.WORLD`: as `GroupMember.WORLD`."""


# --- the group -----------------------------------------------------------------------------------


def is_available() -> bool:
    """True: groups of one process are."""
    return True


def is_initialized() -> bool:
    """Is there a group?"""
    return GroupMember.WORLD is not None


def is_gloo_available() -> bool:
    """True."""
    return True


def is_nccl_available() -> bool:
    """False."""
    return False


is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


def is_torchelastic_launched() -> bool:
    """Was the process started by torchrun?"""
    return "TORCHELASTIC_RUN_ID" in os.environ


def init_process_group(backend: str | None = None, init_method: str | None = None,
                       timeout: Any = None, world_size: int = -1, rank: int = -1,
                       store: Any = None, group_name: str = "", pg_options: Any = None,
                       device_id: Any = None) -> None:  # fmt: skip
    """init_process_group(backend, rank=0, world_size=1): makes the group of this process."""
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if store is None and init_method in (None, "env://"):
        rank, world_size = _from_environment(rank, world_size)
    if world_size != 1 or rank != 0:
        raise RuntimeError(
            f"torch.distributed: rank {rank} of {world_size} processes; there is no communication "
            "between processes: run in one, with rank=0 and world_size=1"
        )
    GroupMember.WORLD = ProcessGroup(backend or Backend.GLOO)


def _from_environment(rank: int, world_size: int) -> tuple[int, int]:
    """What launchers say; torch's error where they did not."""
    found = {"RANK": rank, "WORLD_SIZE": world_size}
    for name in (*found, *_ADDRESS):
        if found.get(name, -1) == -1:
            if name not in os.environ:
                raise ValueError("Error initializing torch.distributed using env:// rendezvous: "
                                 f"environment variable {name} expected, but not set")  # fmt: skip
            found[name] = int(os.environ[name]) if name in found else 0
    return found["RANK"], found["WORLD_SIZE"]


def destroy_process_group(group: Any = None) -> None:
    """The end of the group."""
    if GroupMember.WORLD is None:
        raise AssertionError("Process group cannot be None")
    if group is None or group is GroupMember.WORLD:
        GroupMember.WORLD = None


def _group(group: Any = None) -> ProcessGroup:
    if GroupMember.WORLD is None:
        raise ValueError(_UNSET)
    return GroupMember.WORLD if group is None else group


def new_group(ranks: Any = None, *args: Any, **kwargs: Any) -> ProcessGroup:
    """A group of the same process."""
    if any(rank != 0 for rank in ranks or ()):
        raise ValueError("the new group's rank should be within the world_size set by "
                         "init_process_group")  # fmt: skip
    return ProcessGroup(_group().backend)


def get_rank(group: Any = None) -> int:
    """0."""
    return _group(group).rank()


def get_world_size(group: Any = None) -> int:
    """1."""
    return _group(group).size()


def get_backend(group: Any = None) -> str:
    """What the group was made for."""
    return _group(group).backend


def get_process_group_ranks(group: Any) -> list[int]:
    """[0]."""
    return [_group(group).rank()]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """LOCAL_RANK of the environment."""
    if "LOCAL_RANK" not in os.environ and fallback_rank is None:
        raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank "
                           "to allow `get_node_local_rank` to work")  # fmt: skip
    return int(os.environ.get("LOCAL_RANK", fallback_rank or 0))


# --- what is sent --------------------------------------------------------------------------------


def _done(group: Any, async_op: bool) -> Work | None:
    _group(group)
    return Work() if async_op else None


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Waits for nobody."""
    return _done(group, async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Waits for nobody."""
    _group(group)


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None,
               async_op: bool = False) -> Work | None:  # fmt: skip
    """The tensor stays what it is: one process has the sum already."""
    return _done(group, async_op)


def broadcast(tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False,
              group_src: int | None = None) -> Work | None:  # fmt: skip
    """The tensor stays what it is."""
    return _done(group, async_op)


def reduce(tensor: Any, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:  # fmt: skip
    """The tensor stays what it is."""
    return _done(group, async_op)


def _copy(target: Any, source: Any, name: str) -> None:
    if tuple(target.shape) != tuple(source.shape):
        raise RuntimeError(
            f"ProcessGroupGloo::{name}: invalid tensor size at index 0 (expected "
            f"({', '.join(map(str, source.shape))}), got ({', '.join(map(str, target.shape))}))"
        )
    with no_grad():
        target.copy_(source)


def all_gather(tensor_list: Any, tensor: Any, group: Any = None,
               async_op: bool = False) -> Work | None:  # fmt: skip
    """tensor_list[0] becomes the tensor."""
    done = _done(group, async_op)
    _copy(tensor_list[0], tensor, "allgather")
    return done


def all_gather_into_tensor(output_tensor: Any, input_tensor: Any, group: Any = None,
                           async_op: bool = False) -> Work | None:  # fmt: skip
    """The output becomes the input."""
    done = _done(group, async_op)
    _copy(output_tensor.view(input_tensor.shape), input_tensor, "allgather")
    return done


all_gather_single = all_to_all_single = all_gather_into_tensor


def gather(tensor: Any, gather_list: Any = None, dst: int | None = None, group: Any = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:  # fmt: skip
    """gather_list[0] becomes the tensor."""
    return all_gather(gather_list, tensor, group, async_op)


def scatter(tensor: Any, scatter_list: Any = None, src: int | None = None, group: Any = None,
            async_op: bool = False, group_src: int | None = None) -> Work | None:  # fmt: skip
    """The tensor becomes scatter_list[0]."""
    return all_gather([tensor], scatter_list[0], group, async_op)


def reduce_scatter(output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None,
                   async_op: bool = False) -> Work | None:  # fmt: skip
    """The output becomes input_list[0]."""
    return all_gather([output], input_list[0], group, async_op)


def all_gather_object(object_list: Any, obj: Any, group: Any = None) -> None:
    """object_list[0] becomes a copy of the object."""
    _group(group)
    object_list[0] = copy.deepcopy(obj)


def gather_object(obj: Any, object_gather_list: Any = None, dst: int | None = None,
                  group: Any = None, group_dst: int | None = None) -> None:  # fmt: skip
    """object_gather_list[0] becomes a copy of the object."""
    all_gather_object(object_gather_list, obj, group)


def broadcast_object_list(object_list: Any, src: int | None = None, group: Any = None,
                          device: Any = None, group_src: int | None = None) -> None:  # fmt: skip
    """The objects stay what they are."""
    _group(group)


def send(tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0,
         group_dst: int | None = None) -> None:  # fmt: skip
    """Raises: there is nobody else."""
    _group(group)
    raise ValueError("Invalid destination rank: destination rank should not be the same as the "
                     "rank of the current process.")  # fmt: skip


def recv(tensor: Any, src: int | None = None, group: Any = None, tag: int = 0,
         group_src: int | None = None) -> int:  # fmt: skip
    """Raises: there is nobody else."""
    _group(group)
    raise ValueError("Invalid source rank: there is no other process to receive from.")


isend, irecv = send, recv
