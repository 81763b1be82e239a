"""A device of its own that computes on the processor, so that where a training puts its tensors can be tested.

While `OnTwoDevices` is active, an operation that takes tensors of both devices is refused, as CUDA refuses it, but for
copies, the indices of an indexing, and numbers (tensors of no dimension) that an elementwise operation only reads.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

_setup_privateuseone_for_python_backend()

aten = torch.ops.aten
INDEXINGS = (aten.index.Tensor, aten.index_put_.default, aten._index_put_impl_.default)
SECOND_DEVICE = "privateuseone"  # torch's name of the device that it leaves to others


class SecondDeviceTensor(torch.Tensor):
    """A tensor on the second device; `values` is where it lies in truth."""

    @staticmethod
    def __new__(cls, values: torch.Tensor) -> "SecondDeviceTensor":
        layout = {"strides": values.stride(), "storage_offset": values.storage_offset(), "dtype": values.dtype}
        tensor = torch.Tensor._make_wrapper_subclass(cls, values.size(), **layout, device=f"{SECOND_DEVICE}:0")
        tensor.values = values
        return tensor

    def tolist(self) -> list:  # which torch has not for subclasses
        return self.values.tolist()

    def share_memory_(self) -> "SecondDeviceTensor":  # nothing to do, as for CUDA
        return self

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        raise RuntimeError(f"{operation} on the second device needs OnTwoDevices to be active")


def ids_of_written(operation, args: tuple, kwargs: dict) -> set[int]:
    """The ids of the tensors that an operation writes into."""
    parameters = operation._schema.arguments
    given = {**dict(zip((each.name for each in parameters), args, strict=False)), **kwargs}
    return {id(given.get(each.name)) for each in parameters if each.alias_info and each.alias_info.is_write}


class OnTwoDevices(TorchDispatchMode):
    """Carries out what is asked of tensors on either device; `operations` counts those on the second."""

    operations = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        tensors = [each for each in tree_iter((args, kwargs)) if isinstance(each, torch.Tensor)]
        second = [tensor for tensor in tensors if isinstance(tensor, SecondDeviceTensor)]
        copy_into = operation is aten.copy_.default
        if not copy_into and operation is not aten._to_copy.default:
            allowed = {id(tensor) for tensor in tree_iter(args[1])} if operation in INDEXINGS else set()
            if torch.Tag.pointwise in operation.tags:
                written = ids_of_written(operation, args, kwargs)
                allowed |= {id(tensor) for tensor in tensors if not tensor.dim()} - written
            first = [tensor for tensor in tensors if not isinstance(tensor, SecondDeviceTensor)]
            if second and any(id(tensor) not in allowed for tensor in first):
                raise RuntimeError(f"{operation} was given tensors of two devices")
        self.operations += bool(second)

        if kwargs.get("device") is not None:
            result_on_second = torch.device(kwargs.pop("device")).type == SECOND_DEVICE
            kwargs["device"] = "cpu"
        else:
            result_on_second = isinstance(args[0], SecondDeviceTensor) if copy_into else bool(second)

        def values(each):
            return each.values if isinstance(each, SecondDeviceTensor) else each

        known = {id(tensor.values): tensor for tensor in second}  # what is returned again by operations in place

        def placed(each):
            if not (result_on_second and isinstance(each, torch.Tensor)):
                return each
            return known[id(each)] if id(each) in known else SecondDeviceTensor(each)

        return tree_map(placed, operation(*tree_map(values, args), **tree_map(values, kwargs)))
