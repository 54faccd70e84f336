#!/usr/bin/env python3
"""Writes tests/data/safetensors/good: files made by the reference library, and what is in them.

  NAME.safetensors  every dtype that the library can write, odd shapes, odd names, metadata, nothing
  tensors.tsv       file, name (JSON), dtype, shape, first byte, last byte + 1, SHA-256 of the bytes;
                    in data order
  metadata.tsv      file, key (JSON), value (JSON)

Places and digests come from a plain reading of the files here, not from the library.
Written with safetensors 0.8.0, torch 2.15.0. Run from anywhere.
"""

import hashlib
import json
import pathlib
import struct

import torch
from safetensors.torch import save

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "safetensors" / "good"

DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32,
    torch.uint64, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz, torch.float8_e8m0fnu, torch.float4_e2m1fn_x2,
]


def of_dtype(dtype):
    """A tensor of 6 elements' worth of bytes 0, 1, 2, … (0 and 1 for bool)."""
    size = torch.empty(0, dtype=dtype).element_size()
    raw = torch.arange(6 * size, dtype=torch.uint8)
    if dtype == torch.bool:
        raw = raw % 2
    return raw.view(dtype).reshape(2, 3)


def ones(*shape):
    return torch.ones(shape, dtype=torch.float32)


NAMES = [
    "", "a", "B", "é", "e\u0301", "埋め込み", "🙂", "\uffff", "a.b/c\\d", 'quote"', "tab\tline\nend",
    "\x1b[31mred", "\x7f", "\x00nul", "\u2028", "\u202eevil", "a" * 300,
]

FILES = {
    "dtypes": ({str(d).removeprefix("torch."): of_dtype(d) for d in DTYPES}, {"format": "pt"}),
    "empty": ({}, None),
    "empty-metadata": ({}, {"format": "pt"}),
    "one": ({"attn0": torch.arange(6, dtype=torch.float32).reshape(1, 1, 2, 3)}, None),
    "shapes": ({
        "scalar": torch.tensor(1.5), "one": ones(1), "none": ones(0), "none2": ones(0, 3),
        "none3": ones(3, 0, 5), "deep": ones(1, 1, 1, 1, 1, 1, 1, 2), "bytes": torch.zeros(
            5, dtype=torch.uint8), "half": torch.zeros(3, dtype=torch.float16)}, {"format": "pt"}),
    "names": ({name: torch.tensor([i], dtype=torch.int16) for i, name in enumerate(NAMES)}, None),
    "metadata": ({"x": ones(2)}, {"note": "größe 埋 🙂 \"q\" \\ \b\f\n\r\t \x01\x1f\x7f \u2028"}),
    "metadata-many": ({"x": ones(2)}, {"format": "pt", "": "empty key", "b": "", "a": "1"}),
    "many": ({f"layer.{i}.weight": torch.full((i % 3,), i, dtype=torch.uint8)
              for i in range(40)}, {"format": "pt"}),
}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    tensors = ["# made by scripts/goldens/good_safetensors.py\n"]
    metadata = list(tensors)
    for file, (content, notes) in FILES.items():
        data = save(content, notes)
        (OUT / f"{file}.safetensors").write_bytes(data)
        (length,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + length])
        for key, value in header.pop("__metadata__", {}).items():
            metadata.append(f"{file}\t{json.dumps(key)}\t{json.dumps(value)}\n")
        assert set(header) == set(content)
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            shape = ",".join(map(str, entry["shape"]))
            digest = hashlib.sha256(data[begin:end]).hexdigest()
            tensors.append(f"{file}\t{json.dumps(name)}\t{entry['dtype']}\t[{shape}]"
                           f"\t{begin}\t{end}\t{digest}\n")
    (OUT / "tensors.tsv").write_text("".join(tensors))
    (OUT / "metadata.tsv").write_text("".join(metadata))


if __name__ == "__main__":
    main()
