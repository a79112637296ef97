"""Reading the arrays of a `.npz` file that is in memory, without copying them."""

import io
import zipfile
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

_LOCAL_HEADER = 30
"""Bytes of a zip file's local header, before the name and the extra field, whose lengths are its last four bytes."""


def read_arrays(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an uncompressed `.npz` file by name, as read-only views of its content.

    For many small arrays this takes a third of the time of `numpy.load`. Raises ValueError if an array is compressed or
    has Python objects.
    """
    found = {}
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        for info in file.infolist():
            if info.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{info.filename} is compressed")
            lengths = content[info.header_offset + _LOCAL_HEADER - 4 : info.header_offset + _LOCAL_HEADER]
            begin = info.header_offset + _LOCAL_HEADER + int.from_bytes(lengths[:2], "little")
            begin += int.from_bytes(lengths[2:], "little")
            found[info.filename.removesuffix(".npy")] = _array(content, begin)
    return found


def _array(content: bytes, begin: int) -> npt.NDArray[Any]:
    """The array whose `.npy` file begins at a byte of `content`."""
    major = content[begin + 6]
    width = 2 if major == 1 else 4
    start = begin + 8 + width
    end = start + int.from_bytes(content[begin + 8 : start], "little")
    shape, fortran, dtype = _header(content[begin:end])
    array = np.frombuffer(content, dtype, int(np.prod(shape, dtype=np.int64)), end)
    return array.reshape(shape, order="F" if fortran else "C")


@lru_cache(maxsize=4096)
def _header(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether in Fortran order, and type. Many arrays have the same header, and parsing it is slow."""
    file = io.BytesIO(header)
    version = npy.read_magic(file)
    shape, fortran, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(file)
    if dtype.hasobject:
        raise ValueError("an array has Python objects")
    return shape, fortran, dtype
