#!/usr/bin/env python3
"""Writes tests/data/safetensors/bad: one minimal file, or folder with an index, per broken rule.

  NAME.safetensors  the bytes
  NAME/             a folder with model.safetensors.index.json and shards
  expected.tsv      name, rule, tensor (JSON), byte, file that breaks it (last component)

In the headers below «» marks the place that the error must name; it is removed.
Needs nothing but Python. Run from anywhere.
"""

import json
import pathlib
import shutil
import struct

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "safetensors" / "bad"
INDEX = "model.safetensors.index.json"
MARK = b"\x00<here>\x00"

rows = []


def marked(text):
    """Bytes of a header without its mark, and where the mark was."""
    data = text if isinstance(text, bytes) else text.encode()
    data = data.replace("«»".encode(), MARK)
    at = data.find(MARK)
    assert at >= 0, text
    return data.replace(MARK, b"", 1), at


def row(name, rule, tensor, byte, file=None):
    assert name not in [r[0] for r in rows], name
    rows.append((name, rule, json.dumps(tensor), str(byte), file or f"{name}.safetensors"))


def raw(name, rule, data, byte=0):
    """A file with these bytes."""
    (OUT / f"{name}.safetensors").write_bytes(data)
    row(name, rule, "", byte)


def bad(name, rule, header, data=0, tensor="", byte=None):
    """A file with this header and so many bytes of data; the byte of the error is marked in the
    header, or counts from the start of the data."""
    if byte is None:
        header, byte = marked(header)
        byte += 8
    else:
        header = header.encode()
        byte += 8 + len(header)
    (OUT / f"{name}.safetensors").write_bytes(
        struct.pack("<Q", len(header)) + header + bytes(data))
    row(name, rule, tensor, byte)


def entry(dtype="F32", shape="[1]", offsets="[0,4]", more=""):
    return f'{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}{more}}}'


def safetensors(*names):
    """A good file with tensors of one byte."""
    header = json.dumps({name: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]}
                         for i, name in enumerate(names)}, separators=(",", ":")).encode()
    return struct.pack("<Q", len(header)) + header + bytes(len(names))


def sharded(name, rule, index, shards, tensor="", byte=None, file=INDEX):
    """A folder with an index, in which the byte is marked unless given, and shards."""
    folder = OUT / name
    folder.mkdir()
    if byte is None:
        index, byte = marked(index)
    else:
        index = index.encode()
    (folder / INDEX).write_bytes(index)
    for shard, content in shards.items():
        (folder / shard).write_bytes(content)
    row(name, rule, tensor, byte, file)


def lengths():
    raw("empty", "too-short", b"")
    raw("seven-bytes", "too-short", b"\2\0\0\0\0\0\0")
    for name, length in [("limit", 100_000_001), ("2p32", 2**32), ("2p63-1", 2**63 - 1),
                         ("2p63", 2**63), ("2p64-8", 2**64 - 8), ("2p64-1", 2**64 - 1)]:
        raw(f"length-{name}", "header-too-large", struct.pack("<Q", length) + b"{}")
    raw("length-one-more", "header-beyond-file", struct.pack("<Q", 3) + b"{}")
    raw("length-only", "header-beyond-file", struct.pack("<Q", 2))
    raw("length-at-limit", "header-beyond-file", struct.pack("<Q", 100_000_000) + b"{}")


def syntax():
    a = '{"a":' + entry()
    for name, header in {
        "nothing": "«»", "white-space": "  «»", "open": "{«»", "behind": "{}«»x",
        "two-objects": "{}«»{}", "comment": "{«»/**/}", "nul-behind": "{}«»\0",
        "nul-padding": "{}  «»\0\0\0\0", "byte-order-mark": "«»\ufeff{}",
        "trailing-comma": a + ",«»}", "single-quotes": "{«»'a':1}",
        "nan": '{"a":{"shape":[«»NaN]}}', "infinity": '{"a":{"shape":[«»Infinity]}}',
        "plus": '{"a":{"shape":[«»+1]}}',
        "hexadecimal": '{"a":{"shape":[0«»x1]}}', "no-fraction": '{"a":{"shape":[1.«»]}}',
        "control-in-string": '{"a«»\n":{}}', "bad-escape": '{"\\«»x41":{}}',
        "lone-high-surrogate": '{"\\ud83d«»":{}}', "lone-low-surrogate": '{"\\ude4«»2":{}}',
        "high-high-surrogate": '{"\\ud83d\\ud83«»d":{}}',
        "too-deep": '{"a":{"x":[[«»[0]]]}}', "too-deep-objects": '{"a":{"x":{"y":{"z":«»{}}}}}',
    }.items():
        bad(f"json-{name}", "not-json", header)
    for name, bytes_ in {
        "continuation": b"\x80", "overlong": b"\xc0\xaf", "surrogate": b"\xed\xa0\x80",
        "beyond": b"\xf4\x90\x80\x80", "ff": b"\xff",
    }.items():
        place = {"surrogate": 1, "overlong": 0, "beyond": 1}.get(name, 0)
        header = b'{"' + bytes_[:place] + MARK + bytes_[place:] + b'":{}}'
        bad(f"utf8-{name}", "not-utf8", header)
    bad("utf8-cut", "not-utf8", b'{"\xe2\x82' + MARK + b'":{}}')
    bad("utf8-in-metadata", "not-utf8", b'{"__metadata__":{"a":"\xc3' + MARK + b'"}}')
    for name, header in {
        "tensor": '{"a":' + entry() + ',«»"a":' + entry() + "}",
        "tensor-escaped": '{"a":' + entry() + ',«»"\\u0061":' + entry() + "}",
        "metadata": '{"__metadata__":{},«»"__metadata__":{}}',
        "metadata-null": '{"__metadata__":{},«»"__metadata__":null}',
        "metadata-key": '{"__metadata__":{"a":"1",«»"a":"1"}}',
        "field": '{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],«»"shape":[4]}}',
        "field-escaped": '{"a":{"dtype":"U8",«»"d\\u0074ype":"U8","shape":[4],"data_offsets":[0,4]}}',
        "unknown-field": '{"a":' + entry(more=',"x":{"y":1,«»"y":2}') + "}",
        "among-many": "{" + "".join(
            f'"t{i}":{entry("U8", "[1]", f"[{i},{i + 1}]")},' for i in range(12)) +
            '«»"t7":' + entry("U8", "[1]", "[12,13]") + "}",
    }.items():
        bad(f"duplicate-{name}", "duplicate-key", header, 4)
    for name, header in {"array": "[]", "string": '"{}"', "null": "null", "number": "12345678",
                         "true": "true"}.items():
        bad(f"root-{name}", "not-an-object", "«»" + header)


def metadata():
    for name, value in {"array": "«»[]", "string": '«»"pt"', "number": "«»1", "true": "«»true",
                        "value-number": '{"a":«»1}', "value-null": '{"a":«»null}',
                        "value-object": '{"a":«»{}}', "value-array": '{"a":«»["x"]}'}.items():
        bad(f"metadata-{name}", "metadata-type", '{"__metadata__":' + value + "}")


def entries():
    def in_entry(name, rule, value, data=4):
        bad(name, rule, '{"first":' + entry() + ',"a":' + value + "}", data, "a")

    for name, value in {"null": "null", "array": "[]", "string": '"x"', "number": "4",
                        "false": "false"}.items():
        in_entry(f"entry-{name}", "entry-type", "«»" + value)
    for name, value in {"null": "null", "number": "32", "object": "{}", "array": '["F32"]'}.items():
        in_entry(f"dtype-{name}", "entry-type", '{"dtype":«»' + value + "}")
    for field in ["shape", "data_offsets"]:
        for name, value in {"null": "null", "number": "4", "object": "{}", "string": '"[1]"',
                            "true": "true"}.items():
            in_entry(f"{field}-{name}", "entry-type", f'{{"{field}":«»{value}}}')
        for name, number in {"fraction": "1.0", "exponent": "1e3", "minus-one": "-1",
                             "minus-zero": "-0", "leading-zero": "01", "2p64": str(2**64), "huge": "1" + "0" * 30,
                             "string": '"1"', "null": "null", "false": "false", "array": "[1]",
                             "object": "{}"}.items():
            in_entry(f"{field}-of-{name}", "bad-number", f'{{"{field}":[0,«»{number}]}}')
    for name, value in {"unknown": "F33", "lower-case": "f32", "empty": "", "pattern": "F8_E4M3FN",
                        "escape": "\\u001b[31m"}.items():
        in_entry(f"dtype-{name}", "unknown-dtype", '{"dtype":«»"' + value + '"}')
    for name, value in {"none": "[]", "one": "[0]", "three": "[0,4,8]",
                        "many": "[" + "0," * 40 + "0]"}.items():
        in_entry(f"offsets-{name}", "offsets-pair", '{"data_offsets":' + value + "«»}")
    for field, value in {"dtype": '{"shape":[1],"data_offsets":[0,4]}',
                         "shape": '{"dtype":"F32","data_offsets":[0,4]}',
                         "data_offsets": '{"dtype":"F32","shape":[1]}', "everything": "{}"}.items():
        bad(f"missing-{field}", "missing-field", '{«»"a":' + value + "}", 4, "a")


def sizes():
    def one(name, rule, value, data=4):
        bad(name, rule, '{«»"a":' + value + "}", data, "a")

    one("offsets-backwards", "offsets-order", entry(offsets="[4,0]"))
    one("offsets-backwards-far", "offsets-order", entry(offsets=f"[{2**64 - 1},0]"))
    for name, dtype, shape in [
            ("product", "U8", f"[{2**32},{2**32}]"), ("then-zero", "U8", f"[{2**40},{2**40},0]"),
            ("bits", "F64", f"[{2**58}]"), ("bits-of-bytes", "U8", f"[{2**64 - 1}]"),
            ("by-one", "BOOL", f"[{2**61}]"), ("packed", "F4", f"[{2**62}]")]:
        one(f"overflow-{name}", "shape-overflow", entry(dtype, shape, "[0,0]"))
    for dtype, count in [("F4", 3), ("F6_E2M3", 1), ("F6_E3M2", 2), ("F6_E3M2", 3)]:
        one(f"partial-{dtype.lower()}-{count}", "partial-byte", entry(dtype, f"[{count}]", "[0,2]"))
    for name, dtype, shape, offsets in [
            ("more", "F32", "[2]", "[0,4]"), ("less", "F16", "[1]", "[0,4]"),
            ("scalar", "F64", "[]", "[0,4]"), ("zero", "F32", "[0]", "[0,4]"),
            ("no-bytes", "F32", "[1]", "[0,0]"), ("wraps", "U8", f"[{2**61 - 1}]", "[0,4]"),
            ("far", "F32", "[1]", f"[0,{2**64 - 1}]"), ("packed", "F4", "[4]", "[0,4]")]:
        one(f"size-{name}", "size-mismatch", entry(dtype, shape, offsets))


def layout():
    def two(name, rule, first, second, data, tensor, byte, dtype="U8"):
        def text(begin, end):
            return entry(dtype, f"[{end - begin}]", f"[{begin},{end}]")
        bad(name, rule, '{"a":' + text(*first) + ',"b":' + text(*second) + "}", data, tensor, byte)

    two("overlap", "overlap", (0, 4), (3, 8), 8, "b", 3)
    two("overlap-same", "overlap", (0, 4), (0, 4), 4, "b", 0)
    two("overlap-inside", "overlap", (0, 8), (2, 4), 8, "b", 2)
    two("overlap-later-first", "overlap", (3, 8), (0, 4), 8, "a", 3)
    two("overlap-empty-inside", "overlap", (0, 4), (2, 2), 4, "b", 2)
    two("hole", "hole", (0, 4), (5, 8), 8, "b", 5)
    two("hole-first", "hole", (1, 4), (4, 8), 8, "a", 1)
    two("hole-empty-behind", "hole", (0, 4), (5, 5), 4, "b", 4)
    two("hole-far", "hole", (0, 4), (2**63, 2**63), 4, "b", 4)
    two("hole-farther", "hole", (0, 4), (2**64 - 1, 2**64 - 1), 4, "b", 4)
    two("file-one-less", "file-size", (0, 4), (4, 8), 7, "b", 7)
    two("file-one-more", "file-size", (0, 4), (4, 8), 9, "b", 8)
    two("file-no-data", "file-size", (0, 4), (4, 8), 0, "b", 0)
    two("file-far-less", "file-size", (0, 4), (4, 2**61 - 1), 8, "b", 8)
    bad("file-no-tensors", "file-size", "{}", 1, "", 0)
    bad("file-metadata-only", "file-size", '{"__metadata__":{"format":"pt"}}', 4, "", 0)
    bad("file-empty-tensors", "file-size", '{"a":' + entry("F32", "[0]", "[0,0]") + "}", 4, "a", 0)


def kinds():
    for name, data in {
        "git-lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        "html": b"<!DOCTYPE html><html></html>", "html-lower": b"<!doctype html>",
        "html-bare": b"<html><body>", "xml": b"<?xml version='1.0'?>",
        "server-error": b'{"error":"Repository not found"}',
        "gzip": b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "zstd": b"\x28\xb5\x2f\xfd\x04\0\0\0\0",
        "xz": b"\xfd7zXZ\0\0\x04\xe6", "bzip2": b"BZh91AY&SY",
        "hdf5": b"\x89HDF\r\n\x1a\n\0\0",
        "pickle-2": b"\x80\x02}q\0.xxx", "pickle-3": b"\x80\x03}q\0.xxx",
        "pickle-4": b"\x80\x04}\x94.xxxx", "pickle-5": b"\x80\x05}\x94.xxxx",
    }.items():
        raw(f"kind-{name}", "unsupported-format", data)


def indexes():
    ab = {"a.safetensors": safetensors("x"), "b.safetensors": safetensors("y")}

    def weight_map(wrong=None, **pairs):
        lines = [f'"{k}":' + "«»" * (k == wrong) + f'"{v}.safetensors"' for k, v in pairs.items()]
        return '{"weight_map":{' + ",".join(lines) + "}}"

    sharded("index-open", "index-not-json", '{"weight_map":{"x":"a.safetensors"}«»', ab)
    sharded("index-behind", "index-not-json", '{"weight_map":{"x":"a.safetensors"}}«»,', ab)
    sharded("index-nothing", "index-not-json", "«»", ab)
    sharded("index-twice", "index-duplicate-key",
            '{"weight_map":{"x":"a.safetensors",«»"x":"b.safetensors"}}', ab)
    sharded("index-twice-escaped", "index-duplicate-key",
            '{"weight_map":{"x":"a.safetensors",«»"\\u0078":"b.safetensors"}}', ab)
    sharded("index-two-maps", "index-duplicate-key",
            '{"weight_map":{"x":"a.safetensors"},«»"weight_map":{"y":"b.safetensors"}}',
            ab)
    sharded("index-no-map", "index-weight-map", '«»{"metadata":{"weight_map":{}}}', ab)
    sharded("index-root-array", "index-weight-map", '«»["weight_map"]', ab)
    sharded("index-map-array", "index-weight-map", '{"weight_map":[«»"a.safetensors"]}', ab)
    sharded("index-map-null", "index-weight-map", '{"weight_map":«»null}', ab)
    sharded("index-map-empty", "index-weight-map", '{"weight_map":«»{}}', ab)
    for name, value in {"number": "«»1", "null": "«»null", "array": '[«»"a.safetensors"]',
                        "empty-array": "«»[]", "empty-object": "«»{}"}.items():
        sharded(f"index-shard-{name}", "index-weight-map",
                '{"weight_map":{"y":"b.safetensors","x":' + value + "}}", ab, "x")
    for name, value in {
        "up": "../a.safetensors", "up-later": "a/../../b.safetensors", "absolute": "/etc/passwd",
        "empty": "", "dot": ".", "dots": "..", "below": "sub/a.safetensors", "slash-end": "a/",
        "backslash": "..\\\\a.safetensors", "nul": "a.safetensors\\u0000.txt", "long": "n" * 256,
        "escaped-slash": "..\\u002fa.safetensors",
    }.items():
        sharded(f"shard-name-{name}", "index-shard-name",
                '{"weight_map":{"x":«»"' + value + '"}}', ab, "x")
    both = ab | {"b.safetensors": safetensors("y", "x")}
    header = 8 + int.from_bytes(both["b.safetensors"][:8], "little")
    sharded("shards-share-a-tensor", "index-duplicate-tensor", weight_map(x="a", y="b"), both, "x",
            header + 1, "b.safetensors")
    sharded("shard-lacks-a-tensor", "index-missing-tensor", weight_map("z", x="a", y="b", z="b"),
            ab, "z")
    sharded("shards-swapped", "index-missing-tensor", weight_map("x", x="b", y="a"), ab, "x")
    sharded("shard-broken", "too-short", weight_map(x="a", y="b"), ab | {"b.safetensors": b""}, "",
            0, "b.safetensors")
    sharded("shard-is-html", "unsupported-format", weight_map(x="a"),
            {"a.safetensors": b"<!DOCTYPE html>"}, "", 0, "a.safetensors")


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    for part in [lengths, syntax, metadata, entries, sizes, layout, kinds, indexes]:
        part()
    lines = ["\t".join(fields) + "\n" for fields in rows]
    (OUT / "expected.tsv").write_text("# made by scripts/goldens/bad_safetensors.py\n" +
                                      "".join(lines))


if __name__ == "__main__":
    main()
