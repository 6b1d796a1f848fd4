"""Keeps what a job writes: its head and its tail, and a piece of it now and then for those who watch."""

from __future__ import annotations

_PIECE_BYTES = 8 << 10


class Capture:
    """The output of one job. It never holds more than `kept_bytes` and one piece."""

    def __init__(self, kept_bytes: int) -> None:
        self._half = max(1, kept_bytes // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._fresh = bytearray()
        self._skipped = 0
        self.total = 0

    def add(self, output: bytes) -> None:
        self.total += len(output)
        room = self._half - len(self._head)
        if room > 0:
            self._head += output[:room]
        self._tail += output[max(room, 0) :]
        if len(self._tail) > self._half:
            del self._tail[: len(self._tail) - self._half]
        self._fresh += output
        if len(self._fresh) > _PIECE_BYTES:
            extra = len(self._fresh) - _PIECE_BYTES
            self._skipped += extra
            del self._fresh[:extra]

    @property
    def cut_bytes(self) -> int:
        """How much was left out between head and tail."""
        return self.total - len(self._head) - len(self._tail)

    def kept(self) -> bytes:
        """Head and tail; if something is left out between them, a line says how much."""
        if not self.cut_bytes:
            return bytes(self._head + self._tail)
        note = f"\n[… {self.cut_bytes} bytes are left out here …]\n".encode()
        return bytes(self._head) + note + bytes(self._tail)

    def take_piece(self) -> bytes:
        """The newest output since the last piece; empty if there is none."""
        note = f"[… {self._skipped} bytes …]\n".encode() if self._skipped else b""
        piece = note + bytes(self._fresh)
        self._skipped = 0
        self._fresh.clear()
        return piece
