"""The processes that train together, and the few collectives they use.

`SingleRank` needs no MPI: its collectives are the identity. `MPIRanks` works on the tensors' own memory.
"""

import os
from typing import Protocol

import torch

from nplm.errors import InputError


class Ranks(Protocol):
    """What the training needs of its processes. Methods that end in _ work in place; several ranks need CPU tensors."""

    rank: int
    size: int

    def maximum_(self, tensor: torch.Tensor) -> None:
        """Allreduce MAX."""
        ...

    def start_sum_(self, tensor: torch.Tensor):
        """Start an Allreduce SUM; the tensor is complete when the returned function has been called."""
        ...

    def gather_rows(self, rows: torch.Tensor) -> torch.Tensor | None:
        """All ranks' rows stacked in rank order on rank 0, None elsewhere."""
        ...

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank."""
        ...

    def broadcast(self, value):
        """Rank 0's value, on every rank."""
        ...


class SingleRank:
    """One process on its own."""

    rank = 0
    size = 1

    def maximum_(self, tensor: torch.Tensor) -> None:
        pass

    def start_sum_(self, tensor: torch.Tensor):
        return lambda: None

    def gather_rows(self, rows: torch.Tensor) -> torch.Tensor:
        return rows

    def any(self, flag: bool) -> bool:
        return flag

    def broadcast(self, value):
        return value


class MPIRanks:
    """The processes of an MPI communicator."""

    def __init__(self, communicator) -> None:
        from mpi4py import MPI

        self._mpi = MPI
        self._communicator = communicator
        self.rank = communicator.Get_rank()
        self.size = communicator.Get_size()

    def maximum_(self, tensor: torch.Tensor) -> None:
        self._communicator.Allreduce(self._mpi.IN_PLACE, tensor.numpy(), op=self._mpi.MAX)

    def start_sum_(self, tensor: torch.Tensor):
        return self._communicator.Iallreduce(self._mpi.IN_PLACE, tensor.numpy(), op=self._mpi.SUM).Wait

    def gather_rows(self, rows: torch.Tensor) -> torch.Tensor | None:
        parts = self._communicator.gather(rows.numpy(), root=0)
        return None if parts is None else torch.cat([torch.from_numpy(part) for part in parts])

    def any(self, flag: bool) -> bool:
        return bool(self._communicator.allreduce(int(flag), op=self._mpi.MAX))

    def broadcast(self, value):
        return self._communicator.bcast(value, root=0)


def connect(expected: int) -> Ranks:
    """The ranks of this run, of which there must be `expected`.

    A launcher that does not match the MPI library starts many worlds of size 1, each of which would train alone and
    write the same files: so any other number than the expected one raises InputError.
    """
    if expected == 1:
        for variable in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE"):
            if int(os.environ.get(variable, "1")) > 1:
                raise InputError(
                    f"--ranks 1 was asked for but the launcher started {os.environ[variable]} processes ({variable}); "
                    "start one process, or give --ranks the launcher's number"
                )
        return SingleRank()
    from mpi4py import MPI

    size = MPI.COMM_WORLD.Get_size()
    if size != expected:
        library = MPI.Get_library_version().splitlines()[0].strip("\0 ")
        raise InputError(
            f"--ranks {expected} was asked for but the MPI world has {size} process(es); the launcher does not fit the "
            f"MPI library that mpi4py loads ({library}): start with that library's own mpiexec, or under SLURM with "
            "srun --mpi=pmi2 (MPICH) or --mpi=pmix (Open MPI)"
        )
    return MPIRanks(MPI.COMM_WORLD)
