"""Damaged files: bytes changed anywhere, and changes that know the format, with lengths and sums put right again.

mutant(FORMAT, BYTES, RANDOM) gives the damaged bytes and says what was done.
"""

import io
import json
import re
import struct
import warnings
import zipfile

from leveldb_tables import masked_crc, read_varint

warnings.simplefilter("ignore")  # names that come twice are on purpose
NUMBERS = [0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1]


# --- Without knowing anything.

def flip(data, random):
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1:]


def set_byte(data, random):
    at = random.randrange(len(data))
    return data[:at] + bytes([random.randrange(256)]) + data[at + 1:]


def cut(data, random):
    return data[:random.randrange(len(data))]


def grow(data, random):
    return data + bytes(random.choice([0, 0x20, random.randrange(256)]) for _ in range(random.choice([1, 2, 7, 8, 64])))


def remove(data, random):
    at, size = random.randrange(len(data)), random.choice([1, 2, 4, 8, 16, 64])
    return data[:at] + data[at + size:]


def repeat(data, random):
    at, size = random.randrange(len(data)), random.choice([1, 2, 4, 8, 16, 64])
    return data[:at + size] + data[at:]


def swap(data, random):
    a, b, size = random.randrange(len(data)), random.randrange(len(data)), random.choice([1, 4, 8, 16])
    a, b = min(a, b), max(a, b)
    if a + size > b or b + size > len(data):
        return flip(data, random)
    return data[:a] + data[b:b + size] + data[a + size:b] + data[a:a + size] + data[b + size:]


def number(data, random):
    width = random.choice([1, 2, 4, 8])
    if len(data) < width:
        return flip(data, random)
    at = random.randrange(len(data) - width + 1)
    value = random.choice([random.choice(NUMBERS), int.from_bytes(data[at:at + width], "little") + random.choice([-1, 1])])
    return data[:at] + (value % (1 << 8 * width)).to_bytes(width, "little") + data[at + width:]


def digit(data, random):
    places = [m.start() for m in re.finditer(rb"[0-9]", data)]
    if not places:
        return flip(data, random)
    at = random.choice(places)
    return data[:at] + random.choice([b"0", b"1", b"9", b"-1", b"1.0", b"1e1", b"18446744073709551616", b"01"]) + data[at + 1:]


PLAIN = [flip, set_byte, cut, grow, remove, repeat, swap, number, digit]


def damaged(data, random, how=PLAIN):
    names = []
    for _ in range(random.choice([1, 1, 1, 1, 2])):
        change = random.choice(how)
        names.append(change.__name__)
        if data:
            data = change(data, random)
    return data, "+".join(names)


# --- Trees of JSON.

def paths_of(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from paths_of(child, path + (key,))


def changed_json(value, random):
    """One place of the tree removed, doubled or made another value."""
    paths = [path for path in paths_of(value) if path]
    if not paths:
        return value, "nothing"
    # Big tables of words would take all changes.
    short = [path for path in paths if len(path) < 3] or paths
    path = random.choice(random.choice([paths, short]))
    parent = value
    for key in path[:-1]:
        parent = parent[key]
    old = parent[path[-1]]
    what = random.choice(["remove", "null", "number", "text", "list", "object", "swap", "rename", "edit"])
    if what == "remove":
        del parent[path[-1]]
    elif what == "swap":
        other = random.choice(paths)
        source = value
        for key in other:
            source = source[key]
        parent[path[-1]] = json.loads(json.dumps(source))
    elif what == "rename" and isinstance(parent, dict):
        parent[str(path[-1]) + random.choice(["", "x", "\u0000", " "])] = parent.pop(path[-1])
    elif what == "edit" and isinstance(old, str):
        parent[path[-1]] = random.choice([old + "x", old[1:], old.upper(), old[::-1], ""])
    elif what == "edit" and isinstance(old, bool):
        parent[path[-1]] = not old
    elif what == "edit" and isinstance(old, (int, float)):
        parent[path[-1]] = random.choice([old + 1, old - 1, -old, old * 1.5, old + 2**32])
    else:
        parent[path[-1]] = {"null": None, "number": random.choice([-1, 0.5, 0, 1, 2**31, 2**64]), "text": random.choice(["", "x"]),
                            "list": random.choice([[], [old]]), "object": {}}.get(what)
    return value, "json-" + what


# --- What knows a format.

def safetensors(data, random):
    size = struct.unpack("<Q", data[:8])[0]
    text, rest = data[8:8 + size], data[8 + size:]
    if random.random() < 0.5:
        text, how = damaged(text, random, [digit, flip, set_byte, remove, repeat, swap])
    else:
        header, how = changed_json(json.loads(text), random)
        text = json.dumps(header, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
        if random.random() < 0.2:
            inner = text.strip()[1:-1]
            text, how = b"{" + inner + b"," + inner + b"}", how + "+twice"
    return struct.pack("<Q", len(text)) + text + rest, "header:" + how


def members(data, random, change):
    """A zip file anew, one of its members changed; sums and sizes are right."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        infos = old.infolist()
        chosen = random.randrange(len(infos)) if infos else -1
        # The member that says what the others mean, more often.
        if random.random() < 0.6:
            chosen = next((i for i, info in enumerate(infos) if info.filename.endswith("data.pkl")), chosen)
        how = "nothing"
        for i, info in enumerate(infos):
            content = old.read(info)
            name = info.filename
            if i == chosen:
                content, how = change(content, random)
                if random.random() < 0.1:
                    name, how = random.choice([name + "x", "x" + name, name.upper(), infos[0].filename]), "name"
            new.writestr(zipfile.ZipInfo(name), content, compress_type=info.compress_type)
            if i == chosen and random.random() < 0.05:
                new.writestr(zipfile.ZipInfo(name), content, compress_type=info.compress_type)
                how += "+twice"
    return out.getvalue(), "member:" + how


def npy(data, random):
    if data[:6] != b"\x93NUMPY" or len(data) < 12:
        return damaged(data, random)
    wide = data[6] > 1
    begin = 12 if wide else 10
    size = int.from_bytes(data[8:begin], "little")
    text, rest = data[begin:begin + size], data[begin + size:]
    edits = [(rb"'descr': *'[^']*'", [b"'descr': '" + d + b"'" for d in (b"<f4", b">f4", b"|b1", b"|u1", b"<i8", b"=f8", b"f4", b"<c8", b"<f2", b"|O", b"<U3", b"|i1", b"<f16", b"|f4")]),
             (rb"(True|False)", [b"True", b"False", b"1", b"None"]),
             (rb"\([^)]*\)", [b"()", b"(2,)", b"(2)", b"(0,)", b"(2, 3,)", b"(-1,)", b"(2L,)", b"(True,)", b"[2]", b"(4294967296, 4294967296)"])]
    if random.random() < 0.6:
        pattern, values = random.choice(edits)
        text, how = re.sub(pattern, lambda _: random.choice(values), text, count=1), "edit"
    else:
        text, how = damaged(text, random, [digit, flip, set_byte, remove, repeat, swap])
    return data[:8] + len(text).to_bytes(begin - 8, "little") + text + rest, "header:" + how


def table(data, random):
    """A table of LevelDB with one block changed in place, and its sum made right."""
    blocks = []
    at = len(data) - 48
    for _ in range(2):
        begin, at = read_varint(data, at)
        size, at = read_varint(data, at)
        blocks.append((begin, size))
    # The blocks of entries lie before the two of the footer.
    first = min(begin for begin, _ in blocks)
    if first > 5:
        blocks += [(0, first - 5)] * 4
    begin, size = random.choice(blocks)
    block, how = damaged(data[begin:begin + size], random, [flip, set_byte, swap, number])
    if len(block) != size:
        return damaged(data, random)
    block += data[begin + size:begin + size + 1]
    return data[:begin] + block + struct.pack("<I", masked_crc(block)) + data[begin + size + 5:], "block:" + how


def gguf(data, random):
    """Numbers of the header: they lie where the texts are not."""
    return damaged(data[:2000], random, [number, number, number, digit, flip, set_byte, repeat, remove])[0] + data[2000:], "header"


def tokenizer(data, random):
    value, how = changed_json(json.loads(data), random)
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"), how


KNOWING = {
    "safetensors": safetensors,
    "torch": lambda data, random: members(data, random, damaged) if data[:2] == b"PK" else damaged(data, random),
    "npy": npy,
    "npz": lambda data, random: members(data, random, npy),
    "gguf": gguf,
    "tensorflow": table,
    "tokenizer": tokenizer,
}


def mutant(kind, data, random):
    if random.random() < 0.35:
        return damaged(data, random)
    try:
        return KNOWING[kind](data, random)
    except (zipfile.BadZipFile, ValueError, IndexError, KeyError, struct.error):
        return damaged(data, random)
