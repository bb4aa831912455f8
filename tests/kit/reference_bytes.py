"""What the slow second decoders of row images and JSON share: bytes from the front, and what is in both."""

from __future__ import annotations

#: bytes that hold 0..9 digits of a DECIMAL
DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


class Bytes:
    """Bytes taken from the front; taking more than there are raises ValueError."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def take(self, count: int) -> bytes:
        end = self.position + count
        require(count >= 0 and end <= len(self.data), "the bytes end too early")
        found = self.data[self.position : end]
        self.position = end
        return found

    def little(self, count: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(count), "little", signed=signed)

    def big(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")


def require(condition: object, message: str) -> None:
    if not condition:
        raise ValueError(message)


def read_decimal(source: Bytes, precision: int, scale: int) -> str:
    """A packed DECIMAL, digit group by digit group."""
    whole = precision - scale
    require(0 < precision <= 65 and 0 <= scale <= 30 and whole >= 0, "no such DECIMAL")
    groups = [whole % 9] * (whole % 9 > 0) + [9] * (whole // 9 + scale // 9) + [scale % 9] * (scale % 9 > 0)
    data = bytearray(source.take(sum(DIGIT_BYTES[digits] for digits in groups)))
    negative = not data[0] & 0x80
    data[0] ^= 0x80
    if negative:
        data = bytearray(octet ^ 0xFF for octet in data)
    packed = Bytes(bytes(data))
    text = ""
    for digits in groups:
        part = str(packed.big(DIGIT_BYTES[digits]))
        require(len(part) <= digits, "a group of digits is too large")
        text += part.zfill(digits)
    head, tail = text[:whole].lstrip("0") or "0", text[whole:]
    return ("-" if negative else "") + head + ("." + tail if scale else "")


def require_clock(hour: int, minute: int, second: int, most: int) -> None:
    require(hour <= most and minute < 60 and second < 60, "no time of day")
