#!/usr/bin/env python3
"""Writes tests/data/number_format: the small float formats in other hands.

  decode.tsv  dtype, number of codes, XXH3-128 of the values of all codes in order, as little-endian
              float32 with every NaN made 0x7FC00000
  encode.tsv  dtype, number of values, XXH3-128 of the codes (little-endian) of these float32 values:
              value i has the bits i·65536 + (i·40503 mod 65536), for i from 0 to 65535; every NaN
              code is replaced by the dtype's highest code

decode.tsv is torch's word and encode.tsv that of ml_dtypes; each must agree with the other, except
that torch gives the largest finite number where a value is too large for F8_E4M3, not NaN.
Written with torch 2.15.0, ml_dtypes 0.6.0, xxhash 4.1.0. Run from anywhere.
"""

import pathlib

import ml_dtypes
import numpy as np
import torch
import xxhash

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "number_format"

# name, torch's type, numpy's type
FORMATS = [
    ("F16", torch.float16, np.float16),
    ("BF16", torch.bfloat16, ml_dtypes.bfloat16),
    ("F8_E4M3", torch.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
    ("F8_E5M2", torch.float8_e5m2, ml_dtypes.float8_e5m2),
    ("F8_E4M3FNUZ", torch.float8_e4m3fnuz, ml_dtypes.float8_e4m3fnuz),
    ("F8_E5M2FNUZ", torch.float8_e5m2fnuz, ml_dtypes.float8_e5m2fnuz),
    ("F8_E8M0", torch.float8_e8m0fnu, ml_dtypes.float8_e8m0fnu),
]


def digest(array):
    return xxhash.xxh3_128(array.tobytes()).hexdigest()


def canonical(values):
    """float32 with one NaN."""
    values = values.astype("<f4")
    values[np.isnan(values)] = np.uint32(0x7FC00000).view(np.float32)
    return values


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    i = np.arange(65536, dtype=np.uint64)
    inputs = (i * 65536 + i * 40503 % 65536).astype(np.uint32).view(np.float32)
    decode = ["# made by scripts/goldens/number_formats.py\n"]
    encode = list(decode)
    for name, torch_type, numpy_type in FORMATS:
        size = np.dtype(numpy_type).itemsize
        unsigned = np.dtype(f"<u{size}")
        codes = np.arange(256 ** size).astype(unsigned)
        values = canonical(torch.from_numpy(codes.copy()).view(torch_type).float().numpy())
        assert np.array_equal(values.view(np.uint32),
                              canonical(codes.view(numpy_type).astype(np.float32)).view(np.uint32))
        decode.append(f"{name}\t{len(codes)}\t{digest(values)}\n")
        if name == "F8_E8M0":
            continue  # not written by masque
        nan = np.array([256 ** size - 1], dtype=np.uint64).astype(unsigned)
        is_nan = np.isnan(values)
        with np.errstate(all="ignore"):
            out = inputs.astype(numpy_type).view(unsigned)
        out = np.where(is_nan[out], nan, out)
        other = torch.from_numpy(inputs.copy()).to(torch_type).view(
            torch.uint8 if size == 1 else torch.uint16).numpy().astype(unsigned)
        other = np.where(is_nan[other], nan, other)
        if name == "F8_E4M3":
            other[np.abs(inputs) > 464] = nan
        assert np.array_equal(out, other), name
        encode.append(f"{name}\t{len(inputs)}\t{digest(out.astype(unsigned))}\n")
    (OUT / "decode.tsv").write_text("".join(decode))
    (OUT / "encode.tsv").write_text("".join(encode))


if __name__ == "__main__":
    main()
