#!/usr/bin/env python3
"""Opens the TensorFlow bundles that `ckpt convert` writes with TensorFlow, tensor by tensor.

    check_bundles.py CKPT             compares; exit 1 at the first difference
    check_bundles.py --write FOLDER   writes the fixture of tests/data/bundle_writer

Bundles of every type that TensorFlow saves (0-d, empty and larger tensors, strings) and of 20,000
names are written by TensorFlow, by CKPT (the program, `build/bin/ckpt`) from those, and by CKPT from
npz. All must be the same two files, byte for byte, and have the same tensors to TensorFlow.
Versions: numpy 2.4.6, tensorflow-cpu 2.21.0.
"""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

DATA = ".data-00000-of-00001"
DTYPES = [tf.float32, tf.float64, tf.int32, tf.uint8, tf.int16, tf.int8, tf.complex64, tf.int64, tf.bool,
          tf.bfloat16, tf.uint16, tf.float16, tf.uint32, tf.uint64, tf.dtypes.experimental.float8_e5m2,
          tf.dtypes.experimental.float8_e4m3fn]
SHAPES = [(), (0,), (3,), (2, 3), (3, 0, 2), (2, 3, 4)]


def typed_tensors():
    """Reproducible tensors of every type, by name."""
    random = np.random.default_rng(1)
    out = {}
    for dtype in DTYPES:
        for shape in SHAPES:
            name = f"{dtype.name}/{'x'.join(map(str, shape)) or 'scalar'}"
            if dtype == tf.bool:
                value = random.random(shape) > 0.5
            elif dtype.is_integer:
                value = random.integers(0, 100, shape)
            else:
                value = random.normal(size=shape)
            out[name] = tf.constant(np.asarray(value).astype(dtype.as_numpy_dtype))
    return out


def many_tensors():
    """So many names that the index has several blocks."""
    value = tf.constant(np.int8(3))
    return {f"group_{i * 7919 % 100003:06d}/layer/kernel": value for i in range(20000)}


def save(prefix, tensors):
    names = sorted(tensors, key=str.encode)
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names),
                      tensors=[tensors[name] for name in names])


def fixture():
    tensors = typed_tensors()
    tensors["text/names"] = tf.constant([b"", b"one", "größer".encode(), b"\0" * 300])
    tensors["text/scalar"] = tf.constant(b"graph")
    return tensors


def raw(value):
    if value.dtype == tf.string:
        return repr(np.asarray(value.numpy(), dtype=object).tolist()).encode()
    return np.ascontiguousarray(value.numpy()).tobytes()


def compare(prefix, expected, what):
    reader = tf.train.load_checkpoint(str(prefix))
    shapes = reader.get_variable_to_shape_map()
    types = reader.get_variable_to_dtype_map()
    if set(shapes) != set(expected):
        sys.exit(f"{what}: other names: {sorted(set(shapes) ^ set(expected))[:5]}")
    for name, value in expected.items():
        if types[name] != value.dtype or list(shapes[name]) != value.shape.as_list():
            sys.exit(f"{what}: {name}: {types[name]} {shapes[name]}, expected {value.dtype} {value.shape}")
        found = tf.raw_ops.RestoreV2(prefix=str(prefix), tensor_names=[name], shape_and_slices=[""],
                                     dtypes=[value.dtype])[0]
        if raw(found) != raw(value):
            sys.exit(f"{what}: {name}: other values")
    print(f"{what}: {len(expected)} tensors")


def same_files(a, b, what):
    for end in [".index", DATA]:
        left, right = (pathlib.Path(f"{prefix}{end}").read_bytes() for prefix in (a, b))
        if left != right:
            sys.exit(f"{what}: {end} has other bytes")
        print(f"{what}: {end}: {len(left)} bytes, the same, SHA-256 {hashlib.sha256(left).hexdigest()}")


def check(ckpt, folder):
    def convert(source, target):
        subprocess.run([ckpt, "convert", source, "-o", target, "-q"], check=True)

    for name, tensors in [("types", fixture()), ("many", many_tensors())]:
        save(folder / name, tensors)
        convert(folder / f"{name}.index", folder / f"{name}-again.index")
        same_files(folder / name, folder / f"{name}-again", f"{name}: bundle to bundle")
        if name == "types":
            compare(folder / f"{name}-again", tensors, f"{name}: bundle to bundle")
    numpy_types = [tf.float32, tf.float64, tf.int32, tf.uint8, tf.int16, tf.int8, tf.complex64, tf.int64, tf.bool,
                   tf.uint16, tf.float16, tf.uint32, tf.uint64]
    plain = {k: v for k, v in typed_tensors().items() if v.dtype in numpy_types}
    np.savez(folder / "plain.npz", **{name: value.numpy() for name, value in plain.items()})
    save(folder / "plain", plain)
    convert(folder / "plain.npz", folder / "plain-npz.index")
    same_files(folder / "plain", folder / "plain-npz", "npz to bundle")
    compare(folder / "plain-npz", plain, "npz to bundle")


def main():
    if sys.argv[1] == "--write":
        save(pathlib.Path(sys.argv[2]) / "types", fixture())
        return
    with tempfile.TemporaryDirectory() as folder:
        check(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder))


if __name__ == "__main__":
    main()
