"""Arrays on disk: safetensors files whose header says what they hold and which vocabulary they belong to.

One format serves encoded splits, models and score streams. It opens without executing anything (unlike pickle), it
maps into memory, and its header carries text beside the arrays:

>>> from safetensors.numpy import load_file
>>> load_file("results/brown/scores/MLP9.test.safetensors")["ln_prob"]  # doctest: +SKIP
"""

import json
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from nplm.errors import InputError
from nplm.files import complete_file, require_file


def write_arrays(path: str | Path, kind: str, arrays: dict[str, np.ndarray], **header: str) -> None:
    """Write named arrays with a header of strings, all of it or nothing.

    `kind` says what the file is ("split", "scores", "kneser_ney", ...); `header` must carry `vocabulary` (the hash)
    wherever ids or probabilities depend on one. The same arrays and header give the same bytes.
    """
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with complete_file(path) as partial:
        partial.write_bytes(_with_sorted_header(save(contiguous, metadata={"kind": kind, **header})))


def _with_sorted_header(serialized: bytes) -> bytes:
    """The same safetensors file, its JSON header in sorted order: the library writes it in a new order every time."""
    length = int.from_bytes(serialized[:8], "little")
    header = json.dumps(json.loads(serialized[8 : 8 + length]), sort_keys=True, separators=(",", ":")).encode()
    header = header.ljust(-(-len(header) // 8) * 8)  # tensors begin at a multiple of 8 bytes
    return len(header).to_bytes(8, "little") + header + serialized[8 + length :]


def read_header(path: str | Path) -> dict[str, str]:
    """The header of a file made by `write_arrays`, without reading its arrays.

    Raises InputError when the file is missing or is not such a file.
    """
    require_file(path)
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: not a safetensors file ({error}); remove it and make it anew") from None
    if "kind" not in header:
        raise InputError(f"{path}: has no header field 'kind', so it was not written by nplm; give another path")
    return header


def read_arrays(path: str | Path, kind: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the header of a file of the given kind.

    Raises InputError when the file is missing, is not such a file or is of another kind.
    """
    header = read_header(path)
    if header["kind"] != kind:
        raise InputError(f"{path}: holds '{header['kind']}' where '{kind}' is expected; give another path")
    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, header  # noqa: SIM118 (not a mapping)


def require_same_vocabulary(*named_hashes: tuple[str | Path, str]) -> str:
    """The vocabulary hash that all of the (file, hash) pairs share; InputError names the first two that differ."""
    first_path, first = named_hashes[0]
    for path, other in named_hashes[1:]:
        if other != first:
            raise InputError(
                f"{path} belongs to vocabulary {other} but {first_path} to {first}; remake one of them with the other's"
            )
    return first
