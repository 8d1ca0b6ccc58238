"""Programs and libraries on Linux, as far as the recorder must know them: 64-bit little-endian ELF files."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_MAGIC = b"\x7fELF"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC = struct.Struct("<qQ")
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB = 1, 5
_SHT_SYMTAB, _SHT_DYNSYM = 2, 11
# Where the byte with the binding and the type of a symbol stands in its entry.
_INFO = 4
_STB_LOCAL, _STB_GLOBAL = 0, 1

# How names of functions that the recorder catches begin, of other libraries than that of C (MPI, OpenSHMEM, ARMCI,
# OMPT) and of its own.
_OF_OTHERS = (
    "MPI_", "PMPI_", "shmem", "shmalloc", "shfree", "shrealloc", "start_pes", "ARMCI_", "armci_", "ompt_", "whywait_",
)  # fmt: skip

MACHINES = {"x86_64": 62, "aarch64": 183}


def is_of_c_library(name: str) -> bool:
    """Whether a function that the recorder can catch is one of the C library: of threads or of files."""
    return not name.startswith(_OF_OTHERS)


class ElfError(ValueError):
    """A file is not a 64-bit little-endian ELF file, or is damaged."""


@dataclass(frozen=True)
class Symbol:
    """An entry of the table of dynamic symbols."""

    name: str
    defined: bool
    exported: bool
    position: int


class Elf:
    """An ELF file in memory.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    ElfError
        If it is something else.
    OSError
        If it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data = path.read_bytes()
        if self._data[:4] != _MAGIC:
            raise ElfError(f"{path} is no ELF file")
        if self._data[4:6] != b"\x02\x01":
            raise ElfError(f"{path} is a 32-bit or a big-endian program")
        try:
            fields = _HEADER.unpack_from(self._data)
            self.machine: int = fields[2]
            self._segments = [
                _SEGMENT.unpack_from(self._data, fields[5] + number * fields[9]) for number in range(fields[10])
            ]
            self._sections = [
                _SECTION.unpack_from(self._data, fields[6] + number * fields[11]) for number in range(fields[12])
            ]
        except struct.error as error:
            raise ElfError(f"{path} is damaged") from error

    @property
    def is_static(self) -> bool:
        """Whether the file is a program without dynamic linking."""
        kinds = {segment[0] for segment in self._segments}
        return _PT_INTERP not in kinds and _PT_DYNAMIC not in kinds

    @property
    def interpreter(self) -> str:
        """The path of the dynamic linker; empty if the file is a library or static."""
        for kind, _, offset, _, _, size, *_ in self._segments:
            if kind == _PT_INTERP:
                return self._data[offset : offset + size].rstrip(b"\0").decode()
        return ""

    def needed(self) -> list[str]:
        """Return the names of the libraries that the file is linked to."""
        names, strings = [], 0
        for kind, _, offset, _, _, size, *_ in self._segments:
            if kind == _PT_DYNAMIC:
                for tag, value in _DYNAMIC.iter_unpack(self._data[offset : offset + size - size % _DYNAMIC.size]):
                    if tag == _DT_NEEDED:
                        names.append(value)
                    elif tag == _DT_STRTAB:
                        strings = self._offset(value)
        return [self._text(strings + name) for name in names]

    def exports(self) -> set[str]:
        """Return the names of all dynamic symbols that the file defines for others."""
        return {symbol.name for symbol in self._symbols() if symbol.defined and symbol.exported}

    def exporting(self, is_wanted: Callable[[str], bool]) -> bytes:
        """Return the file with just those dynamic symbols for others that are wanted by their names.

        The dynamic linker passes over the others, as if they were local; they can be wanted again later.
        """
        data = bytearray(self._data)
        for symbol in self._symbols():
            if symbol.defined:
                binding = _STB_GLOBAL if is_wanted(symbol.name) else _STB_LOCAL
                data[symbol.position + _INFO] = binding << 4 | data[symbol.position + _INFO] & 15
        return bytes(data)

    def has_symbol(self, name: str) -> bool:
        """Whether the file has a symbol of a name that is there for debuggers; nothing is known of stripped files."""
        text = f"\0{name}\0".encode()
        tables = [self._sections[section[6]] for section in self._sections if section[1] == _SHT_SYMTAB]
        return any(self._data.find(text, table[4], table[4] + table[5]) >= 0 for table in tables)

    def contains(self, text: bytes) -> bool:
        """Whether some bytes are anywhere in the file."""
        return text in self._data

    def _symbols(self) -> Iterator[Symbol]:
        for _, kind, _, _, offset, size, link, _, _, _ in self._sections:
            if kind != _SHT_DYNSYM:
                continue
            if link >= len(self._sections) or offset + size > len(self._data):
                raise ElfError(f"{self.path} is damaged")
            strings = self._sections[link][4]
            for position in range(offset, offset + size - _SYMBOL.size + 1, _SYMBOL.size):
                name, info, _, section, _, _ = _SYMBOL.unpack_from(self._data, position)
                yield Symbol(self._text(strings + name), section != 0, info >> 4 != _STB_LOCAL, position)

    def _offset(self, address: int) -> int:
        """Return where in the file a virtual address is."""
        for kind, _, offset, virtual, _, size, _, _ in self._segments:
            if kind == _PT_LOAD and virtual <= address < virtual + size:
                return int(offset + address - virtual)
        raise ElfError(f"{self.path} is damaged")

    def _text(self, position: int) -> str:
        end = self._data.find(b"\0", position)
        if end < 0:
            raise ElfError(f"{self.path} is damaged")
        return self._data[position:end].decode(errors="replace")
