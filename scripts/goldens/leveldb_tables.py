"""The tables of LevelDB that TensorFlow's indexes are: their numbers, sums and blocks, read and written."""

import struct

CASTAGNOLI = []
for value in range(256):
    for _ in range(8):
        value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    CASTAGNOLI.append(value)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CASTAGNOLI[(crc ^ byte) & 255] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def snappy(data):
    """Literals, and copies of all three kinds."""
    out, at, begin, seen = varint(len(data)), 0, 0, {}

    def literal(text):
        if not text:
            return b""
        n = len(text) - 1
        extra = b"" if n < 60 else struct.pack("<I", n)[:2]
        return bytes([(n if n < 60 else 61) << 2]) + extra + text

    copies = 0
    while at + 4 <= len(data):
        key = data[at:at + 4]
        found = seen.get(key)
        seen[key] = at
        if found is None:
            at += 1
            continue
        length = 4
        while length < 64 and at + length < len(data) and data[found + length] == data[at + length]:
            length += 1
        back = at - found
        out += literal(data[begin:at])
        copies += 1
        if length <= 11 and back < 2048:
            out += bytes([1 | length - 4 << 2 | back >> 8 << 5, back & 255])
        elif copies % 2:
            out += bytes([2 | length - 1 << 2]) + struct.pack("<H", back)
        else:
            out += bytes([3 | length - 1 << 2]) + struct.pack("<I", back)
        at += length
        begin = at
    return out + literal(data[begin:])


def entries_of(index):
    """Keys and values of a table of raw blocks."""
    at, handles = len(index) - 48, []
    for _ in range(4):
        number, at = read_varint(index, at)
        handles.append(number)

    def block(offset, size):
        data, at, key, rows = index[offset:offset + size], 0, b"", []
        end = size - 4 - 4 * struct.unpack("<I", data[-4:])[0]
        while at < end:
            shared, at = read_varint(data, at)
            added, at = read_varint(data, at)
            length, at = read_varint(data, at)
            key = key[:shared] + data[at:at + added]
            rows.append((key, data[at + added:at + added + length]))
            at += added + length
        return rows

    return [row for _, handle in block(*handles[2:])
            for row in block(*(lambda v: (v[0], read_varint(handle, v[1])[0]))(read_varint(handle, 0)))]


def build_block(rows, restart):
    out, restarts, before = b"", [], b""
    for i, (key, value) in enumerate(rows):
        shared = 0
        if i % restart == 0:
            restarts.append(len(out))
        else:
            while shared < min(len(before), len(key)) and before[shared] == key[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        before = key
    restarts = restarts or [0]
    return out + b"".join(struct.pack("<I", r) for r in restarts) + struct.pack("<I", len(restarts))


def build_table(rows, per_block, pack):
    out = b""

    def add(block):
        nonlocal out
        packed = snappy(block) if pack else block
        kind = b"\1" if pack else b"\0"
        handle = varint(len(out)) + varint(len(packed))
        out += packed + kind + struct.pack("<I", masked_crc(packed + kind))
        return handle

    index = [(rows[i:i + per_block][-1][0], add(build_block(rows[i:i + per_block], 4)))
             for i in range(0, len(rows), per_block)]
    handles = add(build_block([], 16)) + add(build_block(index, 1))
    return out + handles.ljust(40, b"\0") + bytes.fromhex("57fb808b247547db")
