"""The ten bytes before the CBOR, and where the data begins after it."""

from __future__ import annotations

import struct

MAGIC = b"NRUB"
VERSION = 1
HEADER_BYTES = 10
ALIGNMENT = 256


def pack_header(metadata_bytes: int) -> bytes:
    """The ten bytes.

    >>> pack_header(276).hex(" ")
    '4e 52 55 42 01 00 14 01 00 00'
    """
    return struct.pack("<4sHI", MAGIC, VERSION, metadata_bytes)


def unpack_header(header: bytes | memoryview) -> tuple[bytes, int, int]:
    """Magic, version and the length of the CBOR."""
    magic, version, metadata_bytes = struct.unpack("<4sHI", header)
    return magic, version, metadata_bytes


def align(offset: int) -> int:
    """The next multiple of 256.

    >>> align(0), align(1), align(256)
    (0, 256, 256)
    """
    return -(-offset // ALIGNMENT) * ALIGNMENT
