#!/usr/bin/env python3
"""Opens what `ckpt convert` writes with the libraries that own the formats, tensor by tensor.

    check_converted.py CKPT [FOLDER]

Makes checkpoints with numpy, safetensors and torch (all dtypes, 0-d, empty, Fortran order, big-endian,
packed members, views with strides, tied tensors, shards), converts each to every format that CKPT (the
program, `build/bin/ckpt`) knows, opens the results with those libraries, and compares dtype, shape and
bytes. Also compares files with what numpy.savez, numpy.save and safetensors write. Prints one line per
conversion; exit 1 at the first difference. FOLDER: where to work (default: a temporary one).
Versions: numpy 2.4.6, safetensors 0.8.0, torch 2.15.0.
"""

import collections
import io
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import safetensors.torch
import torch

EXTENSIONS = {"safetensors": ".safetensors", "npz": ".npz", "torch": ".bin"}
NUMPY = {torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8,
         torch.uint8, torch.bool, torch.complex64, torch.uint16, torch.uint32, torch.uint64}


def tensors(dtypes):
    out = collections.OrderedDict()
    torch.manual_seed(0)
    for dtype in dtypes:
        name = str(dtype).removeprefix("torch.")
        for shape in [(), (0,), (3,), (2, 3), (3, 0, 2), (2, 3, 4)]:
            if dtype == torch.bool:
                value = torch.rand(shape) > 0.5
            elif dtype.is_floating_point or dtype.is_complex:
                value = torch.randn(shape).to(dtype)
            else:
                value = torch.randint(0, 100, shape).to(dtype)
            out[f"{name}.{'x'.join(map(str, shape)) or 'scalar'}"] = value
    return out


def raw(tensor):
    """Its bytes: equal for NaN, and for types that have no comparison."""
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def load(path):
    if path.suffix == ".safetensors":
        return safetensors.torch.load_file(path)
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            return {name: torch.from_numpy(np.array(file[name])) for name in file.files}
    if path.suffix == ".npy":
        return {"array": torch.from_numpy(np.load(path, allow_pickle=False))}
    return torch.load(path, weights_only=True)


def compare(found, expected, what):
    if set(found) != set(expected):
        sys.exit(f"{what}: other names: {sorted(set(found) ^ set(expected))}")
    for name, value in expected.items():
        if found[name].dtype != value.dtype or found[name].shape != value.shape:
            sys.exit(f"{what}: {name}: {found[name].dtype} {tuple(found[name].shape)}, expected "
                     f"{value.dtype} {tuple(value.shape)}")
        if raw(found[name]) != raw(value):
            sys.exit(f"{what}: {name}: other bytes")
    print(f"{what}: {len(expected)} tensors")


def sources(folder):
    """Files by the libraries: path, the tensors in it."""
    every = tensors(sorted(NUMPY | {torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2}, key=str))
    plain = {name: value for name, value in every.items() if value.dtype in NUMPY}
    safetensors.torch.save_file(every, folder / "all.safetensors", {"format": "pt"})
    yield "all.safetensors", every
    safetensors.torch.save_file(plain, folder / "plain.safetensors", {"format": "pt"})
    yield "plain.safetensors", plain
    arrays = {name: value.numpy() for name, value in plain.items()}
    np.savez(folder / "plain.npz", **arrays)
    yield "plain.npz", plain
    turned = {name: np.asfortranarray(value) if i % 2 else value.astype(value.dtype.newbyteorder(">"))
              for i, (name, value) in enumerate(arrays.items())}
    np.savez(folder / "turned.npz", **turned)
    yield "turned.npz", plain
    np.savez_compressed(folder / "packed.npz", **turned)
    yield "packed.npz", plain
    torch.save(every, folder / "zip.bin")
    yield "zip.bin", every
    torch.save(plain, folder / "legacy.bin", _use_new_zipfile_serialization=False)
    yield "legacy.bin", plain
    base = torch.arange(24.0).reshape(4, 6)
    views = {"t": base.t(), "row": base[1], "step": base[:, ::2], "whole": base}
    torch.save(views, folder / "views.bin")
    yield "views.bin", views
    np.save(folder / "one.npy", np.asfortranarray(base.numpy()))
    yield "one.npy", {"array": base}


def formats(ckpt):
    text = subprocess.run([ckpt, "convert", "x", "-o", "y", "--format", "?"], capture_output=True,
                          text=True, check=False).stderr
    return [name for name in EXTENSIONS if name in text]


def convert(ckpt, source, target, *options):
    subprocess.run([ckpt, "convert", source, "-o", target, "-q", *options], check=True)


def same_file(path, expected, what):
    if path.read_bytes() != expected:
        sys.exit(f"{what}: other bytes than the library's")
    print(f"{what}: the same bytes")


def check_bytes(ckpt, folder):
    """Whole files, where the library writes one way only."""
    plain = load(folder / "plain.npz")
    convert(ckpt, folder / "turned.npz", folder / "again.npz")
    same_file(folder / "again.npz", (folder / "plain.npz").read_bytes(), "turned.npz as numpy.savez")
    convert(ckpt, folder / "one.npy", folder / "again.npy")
    out = io.BytesIO()
    np.save(out, np.ascontiguousarray(np.load(folder / "one.npy")))
    same_file(folder / "again.npy", out.getvalue(), "one.npy as numpy.save")
    convert(ckpt, folder / "plain.safetensors", folder / "from.npz")
    convert(ckpt, folder / "from.npz", folder / "again.safetensors")
    same_file(folder / "again.safetensors", safetensors.torch.save(plain, {"format": "pt"}),
              "npz as safetensors")


def check_shards(ckpt, folder, names):
    convert(ckpt, folder / "plain.safetensors", folder / "sharded", "--shard-size", "300B")
    plain = load(folder / "plain.safetensors")
    for name in names:
        target = folder / f"shards-{name}"
        options = ["--shard-size", "300B"] if name != "npz" else []
        convert(ckpt, folder / "sharded", target, "--format", name, *options)
        index = list(target.glob("*.index.json"))
        if index:
            shards = set(json.loads(index[0].read_text())["weight_map"].values())
            found = {k: v for shard in shards for k, v in load(target / shard).items()}
        else:
            found = load(target / "model.npz")
        compare(found, plain, f"shards to {name}")


def check_ties(ckpt, folder):
    table = torch.randn(5, 3)
    tied = {"bert.embeddings.word_embeddings.weight": table, "cls.predictions.decoder.weight": table}
    (folder / "tied").mkdir()
    (folder / "tied" / "config.json").write_text('{"model_type": "bert"}')
    torch.save(tied, folder / "tied" / "pytorch_model.bin")
    convert(ckpt, folder / "tied", folder / "kept")
    kept = load(folder / "kept" / "pytorch_model.bin")
    compare(kept, tied, "tied torch to torch")
    if len({value.data_ptr() for value in kept.values()}) != 1:
        sys.exit("tied torch to torch: no longer one storage")
    convert(ckpt, folder / "tied", folder / "left", "--format", "safetensors")
    compare(load(folder / "left" / "model.safetensors"),
            {"bert.embeddings.word_embeddings.weight": table}, "tied torch to safetensors")
    convert(ckpt, folder / "tied" / "pytorch_model.bin", folder / "copies.safetensors")
    compare(load(folder / "copies.safetensors"), tied, "a tied file without a config to safetensors")


def check(ckpt, folder):
    names = formats(ckpt)
    for source, expected in sources(folder):
        if source.endswith(".bin") and "torch" not in names:
            continue
        for name in names:
            if name == "npz" and any(value.dtype not in NUMPY for value in expected.values()):
                continue
            target = folder / f"from-{source.replace('.', '-')}{EXTENSIONS[name]}"
            convert(ckpt, folder / source, target)
            compare(load(target), expected, f"{source} to {name}")
    check_bytes(ckpt, folder)
    check_shards(ckpt, folder, names)
    if "torch" in names:
        check_ties(ckpt, folder)


def main():
    ckpt = pathlib.Path(sys.argv[1]).resolve()
    if len(sys.argv) > 2:
        check(ckpt, pathlib.Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        check(ckpt, pathlib.Path(folder))


if __name__ == "__main__":
    main()
