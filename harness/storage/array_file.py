"""Writing arrays to an `.npz` file array by array, and reading them without copying, from memory or a mapped file."""

import io
import mmap
import struct
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

_LOCAL_HEADER = 30
"""Bytes of a zip file's local header, before the name and the extra field, whose lengths are its last four bytes."""

_ZIP64 = 20
"""Bytes of the extra field that zipfile adds to a local header for sizes of 64 bits."""

_ALIGNMENT = 64
_PADDING = 0xD935
"""The kind of the extra field that only moves an array to an aligned place, as Android's zipalign writes it."""

Content = bytes | mmap.mmap


def write_arrays(file: IO[bytes], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write an uncompressed `.npz` file whose arrays begin at multiples of 64 bytes.

    numpy copies an array that is not aligned before it searches in it. Raises ValueError for an array of Python
    objects.
    """
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            begin = file.tell() + _LOCAL_HEADER + len(entry.filename.encode()) + _ZIP64 + 4
            padding = -begin % _ALIGNMENT
            entry.extra = struct.pack("<HH", _PADDING, padding) + bytes(padding)
            with archive.open(entry, "w", force_zip64=True) as target:
                npy.write_array(target, np.asanyarray(array), allow_pickle=False)


def read_arrays(content: Content) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an uncompressed `.npz` file by name, as read-only views of its content.

    For many small arrays this takes a third of the time of `numpy.load`. Raises ValueError if an array is compressed or
    has Python objects.
    """
    found = {}
    # A mapped file is a file object, too; its position is of no importance to anyone else.
    source: Any = io.BytesIO(content) if isinstance(content, bytes) else content
    with zipfile.ZipFile(source) as file:
        for info in file.infolist():
            if info.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{info.filename} is compressed")
            lengths = content[info.header_offset + _LOCAL_HEADER - 4 : info.header_offset + _LOCAL_HEADER]
            begin = info.header_offset + _LOCAL_HEADER + int.from_bytes(lengths[:2], "little")
            begin += int.from_bytes(lengths[2:], "little")
            found[info.filename.removesuffix(".npy")] = _array(content, begin)
    return found


def _array(content: Content, begin: int) -> npt.NDArray[Any]:
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
