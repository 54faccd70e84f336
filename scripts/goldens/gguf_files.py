#!/usr/bin/env python3
"""Writes tests/data/gguf: files made by the gguf package, and what is in them.

  good/NAME.gguf     every type of metadata, every type of tensor that the package can make, a small
                     BERT with its tokenizer, data aligned to 64 bytes, version 2, no tensors
  good/tensors.tsv   file, name, type, shape, first byte, SHA-256 of the bytes; in data order
  good/metadata.tsv  file, key, type, the value as JSON (of an array all elements)

  gguf_files.py FILE …       instead prints both tables of these files, as the package reads them
  gguf_files.py --same A B   fails unless both have the same tensors and metadata

Written with gguf 0.19.0, NumPy 2.4.6, Python 3.11.7. Run from anywhere.
"""

import hashlib
import json
import pathlib
import struct
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType as Value

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "gguf" / "good"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "un", "##aff", "##able", "a",
              "##s", "世", "[unused1]"]
CONTROL = 5


def converted(token):
    """How llama.cpp's converter spells a token of BERT."""
    if token.startswith("##"):
        return token[2:]
    return "\u2581" + token


def values(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def write(name, writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def start(name, architecture):
    return gguf.GGUFWriter(OUT / f"{name}.gguf", architecture)


def write_types():
    w = start("types", "bert")
    for i, (kind, code) in enumerate([(Type.F64, "f8"), (Type.I8, "i1"), (Type.I16, "i2"), (Type.I32, "i4"),
                                      (Type.I64, "i8"), (Type.F16, "f2"), (Type.F32, "f4")]):
        w.add_tensor(f"plain.{kind.name}", (values((2, 3), i) * 50).astype(code))
    w.add_tensor("vector", values((5,), 10))
    w.add_tensor("four", values((2, 1, 3, 2), 11))
    w.add_tensor("none", values((0, 4), 12))
    for i, kind in enumerate(gguf.GGML_QUANT_SIZES):
        if kind in (Type.F64, Type.I8, Type.I16, Type.I32, Type.I64, Type.F16, Type.F32, Type.Q8_1):
            continue
        data = values((2, 256), 20 + i)
        try:
            quantised = gguf.quants.quantize(data, kind)
        except NotImplementedError:
            block, size = gguf.GGML_QUANT_SIZES[kind]
            quantised = np.random.default_rng(i).integers(0, 256, (2, 256 // block * size), dtype="u1")
        w.add_tensor(f"blocks.{kind.name}", quantised, raw_dtype=kind)
    w.add_tensor("last", values((3,), 13))
    write("types", w)


def write_metadata():
    w = start("metadata", "bert")
    numbers = [(Value.UINT8, 255), (Value.INT8, -128), (Value.UINT16, 65535), (Value.INT16, -32768),
               (Value.UINT32, 2**32 - 1), (Value.INT32, -2**31), (Value.FLOAT32, 0.1), (Value.BOOL, True),
               (Value.UINT64, 2**64 - 1), (Value.INT64, -2**63), (Value.FLOAT64, 1e300)]
    for kind, value in numbers:
        w.add_key_value(f"one.{kind.name}", value, kind)
        w.add_key_value(f"few.{kind.name}", [value] * 3, Value.ARRAY, kind)
    w.add_key_value("few.STRING", ["a", "", "é\n", "d", "e", "f"], Value.ARRAY, Value.STRING)
    w.add_string("one.STRING", "tab\t and \u2581")
    w.add_string("empty", "")
    w.add_float32("nan", float("nan"))
    w.add_tensor("a", values((2, 2), 1))
    write("metadata", w)


def write_bert(name, alignment=None):
    w = start(name, "bert")
    if alignment:
        w.add_custom_alignment(alignment)
    w.add_name("tiny")
    w.add_context_length(16)
    w.add_embedding_length(32)
    w.add_block_count(1)
    w.add_head_count(4)
    w.add_vocab_size(len(VOCABULARY))
    w.add_tokenizer_model("bert")
    kinds = [3 if i < CONTROL else 1 for i in range(len(VOCABULARY))]
    w.add_token_list([t if k == 3 else converted(t) for t, k in zip(VOCABULARY, kinds)])
    w.add_token_types(kinds)
    w.add_pad_token_id(0)
    w.add_unk_token_id(1)
    w.add_uint32("tokenizer.ggml.cls_token_id", 2)
    w.add_sep_token_id(3)
    w.add_mask_token_id(4)
    w.add_tensor("token_embd.weight", values((len(VOCABULARY), 32), 1))
    w.add_tensor("position_embd.weight", values((16, 32), 2))
    w.add_tensor("token_types.weight", values((2, 32), 3).astype("f2"))
    w.add_tensor("token_embd_norm.weight", np.ones(32, "f4"))
    w.add_tensor("token_embd_norm.bias", np.zeros(32, "f4"))
    w.add_tensor("blk.0.ffn_up.weight", gguf.quants.quantize(values((8, 32), 4), Type.Q8_0), raw_dtype=Type.Q8_0)
    w.add_tensor("blk.0.ffn_up.bias", values((8,), 5))
    write(name, w)


def write_version_2():
    data = bytearray((OUT / "bert.gguf").read_bytes())
    data[4:8] = struct.pack("<I", 2)
    (OUT / "version2.gguf").write_bytes(data)


def write_empty():
    w = start("empty", "bert")
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_ti_data_to_file()
    w.close()


def tensors_of(path):
    rows = []
    for t in gguf.GGUFReader(path).tensors:
        shape = ",".join(str(int(n)) for n in reversed(t.shape))
        digest = hashlib.sha256(t.data.tobytes()).hexdigest()
        rows.append((int(t.data_offset), t.name, t.tensor_type.name, f"[{shape}]", digest))
    return [(pathlib.Path(path).name, name, kind, shape, str(begin), digest)
            for begin, name, kind, shape, digest in sorted(rows, key=lambda row: row[0])]


def plain(value):
    return "nan" if isinstance(value, float) and value != value else value


def metadata_of(path):
    rows = []
    for key, field in gguf.GGUFReader(path).fields.items():
        if key.startswith("GGUF."):
            continue
        array = field.types[0] == Value.ARRAY
        element = field.types[-1].name if len(field.types) > 1 else ""
        kind = f"{element}[]" if array else field.types[0].name
        text = json.dumps(plain(field.contents()), ensure_ascii=False)
        rows.append((pathlib.Path(path).name, key, kind, text))
    return rows


def same(a, b):
    def content(path):
        tensors = sorted(row[1:4] + row[5:] for row in tensors_of(path))
        return tensors, [row[1:] for row in metadata_of(path)]
    for what, left, right in zip(("tensors", "metadata"), content(a), content(b)):
        for row in left:
            if row not in right:
                sys.exit(f"{what}: only in {a}: {row}")
        if left != right:
            sys.exit(f"{what}: {a} and {b} differ, in order or by more in {b}")
    print(f"{a} and {b}: {len(content(a)[0])} tensors and {len(content(a)[1])} metadata are the same")


def table(name, head, rows):
    lines = ["# " + "\t".join(head)] + ["\t".join(row) for row in rows]
    (OUT / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--same":
        same(sys.argv[2], sys.argv[3])
        return
    if len(sys.argv) > 1:
        for path in sys.argv[1:]:
            for row in tensors_of(path) + metadata_of(path):
                print("\t".join(row))
        return
    OUT.mkdir(parents=True, exist_ok=True)
    write_types()
    write_metadata()
    write_bert("bert")
    write_bert("align64", 64)
    write_version_2()
    write_empty()
    files = sorted(OUT.glob("*.gguf"))
    table("tensors.tsv", ("file", "name", "type", "shape", "begin", "sha256"),
          [row for path in files for row in tensors_of(path)])
    table("metadata.tsv", ("file", "key", "type", "json"),
          [row for path in files for row in metadata_of(path)])


if __name__ == "__main__":
    main()
