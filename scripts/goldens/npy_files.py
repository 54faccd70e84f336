#!/usr/bin/env python3
"""Writes tests/data/npy: files made by NumPy, and what is in them.

  good/NAME.npy   orders, byte orders, versions 1.0 to 3.0, headers of old NumPy and of Python 2
  good/NAME.npz   numpy.savez and savez_compressed, from a stream (data descriptors), other zip forms
  good/arrays.tsv file, name in it, dtype, shape, SHA-256 of the row-major little-endian bytes
  bad/NAME.npy    arrays of types that are not read
  bad/rules.tsv   file, the rule that it breaks

  npy_files.py FOLDER    instead opens every file there: prints the rows of arrays.tsv, and fails
                         unless NumPy writes the same bytes for the same arrays

Written with NumPy 2.4.6, ml_dtypes 0.6.0, Python 3.11.7. Run from anywhere.
"""

import hashlib
import io
import pathlib
import sys
import zipfile

import ml_dtypes
import numpy as np
from numpy.lib import format as npy

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "npy"

DTYPES = {
    "b1": "BOOL", "i1": "I8", "i2": "I16", "i4": "I32", "i8": "I64", "u1": "U8", "u2": "U16",
    "u4": "U32", "u8": "U64", "f2": "F16", "f4": "F32", "f8": "F64", "c8": "C64",
}
SHAPES = [(), (0,), (1,), (7,), (3, 0, 2), (2, 3, 4), (1, 1, 1, 1, 1, 2)]


def array(dtype, shape):
    """Bytes 0, 1, 2, … as elements (0 and 1 for booleans), row-major."""
    size = np.dtype(dtype).itemsize
    raw = (np.arange(int(np.prod(shape)) * size) % 251).astype("u1")
    return (raw % 2 if dtype == "b1" else raw).view(dtype).reshape(shape)


def row(file, name, value):
    plain = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("<")))
    shape = ",".join(map(str, value.shape))
    digest = hashlib.sha256(plain.tobytes()).hexdigest()
    dtype = DTYPES[value.dtype.str[1:]]
    return f"{file}\t{name}\t{dtype}\t[{shape}]\t{digest}\n"


def saved(value, version=None):
    out = io.BytesIO()
    npy.write_array(out, value, version)
    return out.getvalue()


def by_hand(text, value, align=64):
    """An npy with this header, for what NumPy no longer writes."""
    text += " " * (-(len(text) + 11) % align) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + value.tobytes()


class Stream(io.BytesIO):
    """A pipe: zipfile cannot go back to fill in the sizes."""

    def seekable(self):
        return False

    def seek(self, *_):
        raise io.UnsupportedOperation

    tell = seek


def zipped(arrays, method, force_zip64, out=None, limit=None):
    """What savez writes, with other forms of the records."""
    out = io.BytesIO() if out is None else out
    before = zipfile.ZIP64_LIMIT
    zipfile.ZIP64_LIMIT = before if limit is None else limit
    with zipfile.ZipFile(out, "w", method) as file:
        for name, value in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = method
            with file.open(info, "w", force_zip64=force_zip64) as member:
                npy.write_array(member, np.asanyarray(value))
    zipfile.ZIP64_LIMIT = before
    return out.getvalue()


def savez(function, **arrays):
    out = io.BytesIO()
    function(out, **arrays)
    return out.getvalue()


def good_files():
    a = array("f4", (2, 3, 4))
    yield "row-major.npy", saved(a)
    yield "column-major.npy", saved(np.asfortranarray(a))
    yield "big-endian.npy", saved(a.astype(">f4"))
    yield "column-major-big-endian.npy", saved(np.asfortranarray(array("i8", (3, 5)).astype(">i8")))
    yield "complex-big-endian.npy", saved(array("c8", (3,)).astype(">c8"))
    yield "scalar.npy", saved(np.array(1.5))
    yield "version-2.npy", saved(array("u2", (5,)), (2, 0))
    yield "version-3.npy", saved(array("u2", (5,)), (3, 0))
    old = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 4), }"
    yield "aligned-to-16.npy", by_hand(old, a, 16)
    two = "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L, 4L), }"
    yield "python-2.npy", by_hand(two, a, 16)
    odd = '{"shape" : ( 2,3 , 4,) ,\n\t"fortran_order":False,"descr":"=f4"}'
    yield "odd-spelling.npy", by_hand(odd, a)
    many = {f"{d}.{i}": array(d, s) for d in DTYPES for i, s in enumerate(SHAPES)}
    yield "savez.npz", savez(np.savez, **many)
    few = {"W": a, "w": np.zeros((16, 16)), "größe/埋め込み": array("i4", (3,)),
           "fortran": np.asfortranarray(array("f2", (3, 4))), "none": array("i1", (0,))}
    yield "savez-compressed.npz", savez(np.savez_compressed, **few)
    orders = {"fortran": np.asfortranarray(a), "big": array("i4", (3, 5)).astype(">i4"),
              "both": np.asfortranarray(array("f8", (4, 3)).astype(">f8")),
              "complex": array("c8", (2, 2)).astype(">c8"), "scalar": np.array(2.5, ">f2"),
              "row": np.asfortranarray(array("u2", (1, 6))), "plain": array("i8", (2, 3))}
    yield "orders.npz", savez(np.savez, **orders)
    yield "orders-compressed.npz", savez(np.savez_compressed, **orders)
    yield "savez-none.npz", savez(np.savez)
    yield "zeros.npz", savez(np.savez_compressed, zeros=np.zeros((400, 250)))
    yield "stream.npz", zipped(few, zipfile.ZIP_DEFLATED, True, Stream())
    yield "stream-stored.npz", zipped(few, zipfile.ZIP_STORED, False, Stream())
    yield "no-zip64.npz", zipped(few, zipfile.ZIP_DEFLATED, False)
    yield "zip64-records.npz", zipped(few, zipfile.ZIP_DEFLATED, True, limit=-1)


BAD = {
    "object": (np.array([{}], dtype=object), "object-array"),
    "structured": (np.zeros(2, dtype=[("a", "<f4"), ("b", "<i2")]), "unsupported-dtype"),
    "text": (np.array(["größe"]), "unsupported-dtype"),
    "bytes": (np.array([b"abc"]), "unsupported-dtype"),
    "complex128": (np.zeros(2, dtype="c16"), "unsupported-dtype"),
    "long-double": (np.zeros(2, dtype="g"), "unsupported-dtype"),
    "dates": (np.zeros(2, dtype="M8[s]"), "unsupported-dtype"),
    "durations": (np.zeros(2, dtype="m8[D]"), "unsupported-dtype"),
    "bfloat16": (np.zeros(2, dtype=ml_dtypes.bfloat16), "unsupported-dtype"),
    "float8": (np.zeros(2, dtype=ml_dtypes.float8_e4m3fn), "unsupported-dtype"),
}


def rows_of(file):
    loaded = np.load(file, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return [row(file.name, "", loaded)]
    return [row(file.name, name, loaded[name]) for name in loaded.files]


def written_again(file):
    loaded = np.load(file, allow_pickle=False)
    out = io.BytesIO()
    if isinstance(loaded, np.ndarray):
        np.save(out, loaded)
    else:
        np.savez(out, **{name: loaded[name] for name in loaded.files})
    return out.getvalue()


def main():
    if len(sys.argv) > 1:
        for file in sorted(pathlib.Path(sys.argv[1]).glob("*.np[yz]")):
            print("".join(rows_of(file)), end="")
            if written_again(file) != file.read_bytes():
                sys.exit(f"{file}: NumPy writes other bytes")
        return
    for folder in ("good", "bad"):
        (OUT / folder).mkdir(parents=True, exist_ok=True)
    rows = ["# made by scripts/goldens/npy_files.py\n"]
    rules = list(rows)
    for name, data in good_files():
        (OUT / "good" / name).write_bytes(data)
        rows += rows_of(OUT / "good" / name)
    for name, (value, rule) in BAD.items():
        np.save(OUT / "bad" / f"{name}.npy", value, allow_pickle=True)
        rules.append(f"{name}.npy\t{rule}\n")
    (OUT / "good" / "arrays.tsv").write_text("".join(rows))
    (OUT / "bad" / "rules.tsv").write_text("".join(rules))


if __name__ == "__main__":
    main()
