#!/usr/bin/env python3
"""Writes tests/data/torch: files made by PyTorch, and what is in them.

  good/NAME.pt      zip files: dtypes, views, ties, parameters, nested state dicts, byte orders
  good/NAME.legacy  the same state dicts in the format before 1.6, and one with views of storages
  good/sharded/     two shards and their index
  good/tensors.tsv  file, name, dtype, shape, tensor that it is an alias of, SHA-256 of the
                    row-major little-endian bytes
  bert/             the model of tests/data/model/bert as pytorch_model.bin, its head tied
  bert-legacy/      the same in the format before 1.6
  bad/NAME          what torch.save writes and we refuse
  bad/rules.tsv     file, the rule that it breaks

  torch_files.py CKPT   instead lets this ckpt convert every good file to a .bin, and fails unless
                        torch opens it and finds the same tensors, bit for bit, ties included

Written with torch 2.15.0, Python 3.11.7. Run from anywhere. Keys in legacy files are addresses: every
run writes others.
"""

import argparse
import collections
import datetime
import hashlib
import io
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile
import zipfile
from unittest import mock

import numpy
import safetensors.torch
import torch

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "torch"

DTYPES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "int32": "I32",
    "uint32": "U32", "int64": "I64", "uint64": "U64", "float16": "F16", "bfloat16": "BF16",
    "float32": "F32", "float64": "F64", "complex64": "C64", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2", "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0", "float4_e2m1fn_x2": "F4",
}


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def patterned(dtype, *shape):
    """Bytes 0, 1, 2, … as elements (0 and 1 for booleans), row-major."""
    size = torch.empty((), dtype=dtype).element_size()
    count = size * int(torch.Size(shape).numel())
    raw = torch.arange(count, dtype=torch.int64).remainder(251).to(torch.uint8)
    if dtype == torch.bool:
        raw = raw.remainder(2)
    return raw.view(dtype).reshape(shape)


def bytes_of(tensor):
    """Row-major, without a conversion."""
    if tensor.numel() == 0:
        return b""
    size = tensor.element_size()
    same_size = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
    return tensor.detach().view(same_size).contiguous().numpy().tobytes()


def shape_of(tensor):
    shape = list(tensor.shape)
    if tensor.dtype == torch.float4_e2m1fn_x2:
        shape[-1] *= 2
    return shape


def place(tensor):
    return (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tensor.dtype,
            tuple(tensor.shape), tuple(tensor.stride()))


def rows_of(file, state):
    first = {}
    for name, tensor in state.items():
        if not isinstance(tensor, torch.Tensor):
            continue
        twin = first.setdefault(place(tensor), name) if tensor.numel() > 0 else name
        shape = ",".join(map(str, shape_of(tensor)))
        digest = hashlib.sha256(bytes_of(tensor)).hexdigest()
        dtype = DTYPES[name_of(tensor.dtype)]
        alias = json.dumps("" if twin == name else twin)
        yield f"{file}\t{json.dumps(name)}\t{dtype}\t[{shape}]\t{alias}\t{digest}\n"


def dtypes():
    return {name: patterned(getattr(torch, name), 2, 3) for name in DTYPES}


def views():
    base = patterned(torch.float32, 6, 8)
    cube = patterned(torch.int16, 3, 4, 5)
    return {
        "base": base, "transposed": base.t(), "rows": base[2:4], "columns": base[:, 1:3],
        "every-third": base[::3, ::2], "column": base[:, 5], "one": base[4, 4],
        "square": base.reshape(4, 12).t(), "expanded": base[1:2].expand(4, 8),
        "expanded-inside": base[:, :1].expand(6, 3), "none": base[6:], "none-wide": base[:0, 3:],
        "cube": cube, "permuted": cube.permute(2, 0, 1), "windows": base.view(-1).unfold(0, 5, 3),
        "part": cube[1:, ::2, 1:4].transpose(0, 2), "complex": patterned(torch.complex64, 4, 3).t(),
        "bytes": patterned(torch.uint8, 9, 2).t(), "doubles": patterned(torch.float64, 3, 3).t(),
        "f8": patterned(torch.float8_e5m2, 4, 5).t(), "scalar": torch.tensor(2.5),
        "one-of-one": patterned(torch.float32, 1, 7, 1).transpose(0, 1),
    }


def ties():
    weight = patterned(torch.float32, 5, 4)
    return collections.OrderedDict(
        embedding=weight, decoder=weight, again=weight.view(5, 4), transposed=weight.t(),
        transposed_again=weight.t(), rows=weight[:2])


def module():
    one = torch.nn.Sequential(torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5),
                              torch.nn.BatchNorm1d(5))
    one[1].weight = one[0].weight
    with torch.no_grad():
        for i, tensor in enumerate(one.state_dict().values()):
            tensor.copy_(torch.arange(tensor.numel()).reshape(tensor.shape) + i)
    return one.state_dict()


def parameters():
    attributes = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    attributes.tag = "t"
    subclass = torch.tensor([3, 4])
    subclass.tag = 7
    return {"parameter": torch.nn.Parameter(torch.tensor([5.0, 6.0])),
            "buffer": torch.nn.Parameter(torch.tensor([7, 8]), requires_grad=False),
            "attributes": attributes, "subclass": subclass}


def nested():
    state = {"größe.埋め込み": patterned(torch.float32, 2, 2), "": torch.tensor(1),
             "_extra_state": {"a": [1, 2.5, None, (True, b"x", {3})]}}
    return {"epoch": 3, "lr": 1e-3, "state_dict": state, "seed": 2**64 - 1,
            "optimizer": {"state": {0: {"step": torch.tensor(9.0)}}, "param_groups": [{}]},
            "device": torch.device("cpu"), "size": torch.Size([2, 3]), "z": 1 + 2j}


def training():
    """What fairseq and others save: nothing of it but the model is a tensor that is read."""
    return {"args": argparse.Namespace(lr=1e-3, name="x", seed=numpy.int64(3)),
            "model": collections.OrderedDict(a=patterned(torch.float32, 2, 3), b=torch.ones(2)),
            "best": numpy.float64(0.5), "rng": numpy.arange(5, dtype="u4"),
            "train": {"epoch": 3, "time": datetime.timedelta(seconds=5)},
            "step": torch.tensor(7), "version": torch.__version__}


STATES = {"dtypes": dtypes, "views": views, "ties": ties, "module": module, "nested": nested,
          "parameters": parameters, "empty": dict,
          "many": lambda: {f"layer.{i}": torch.tensor([i]) for i in range(40)},
          "training": training}


def saved(value, **how):
    out = io.BytesIO()
    torch.save(value, out, **how)
    return out.getvalue()


def rewritten(data, change):
    """The same zip with other members, as Python writes it."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for member in old.infolist():
            content = change(member.filename.removeprefix("archive/"), old.read(member))
            if content is not None:
                new.writestr(zipfile.ZipInfo(member.filename), content)
    return out.getvalue()


def big_endian():
    """Storages of 4-byte numbers turned around."""
    state = {"a": patterned(torch.float32, 3, 4), "t": patterned(torch.float32, 4, 2).t(),
             "i": patterned(torch.int32, 5)}

    def change(name, content):
        if name == "byteorder":
            return b"big"
        if name.startswith("data/"):
            return b"".join(content[i:i + 4][::-1] for i in range(0, len(content), 4))
        return content

    return rewritten(saved(state), change)


def old_zip():
    """What torch 1.6 to 2.0 wrote: fewer members."""
    keep = lambda name, content: content if name[0] != "." and name != "byteorder" else None
    return rewritten(saved(views()), keep)


def storage_views():
    """A legacy file whose storages are parts of another one: torch before 0.4 wrote them."""
    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return value.id if isinstance(value, Stored) else None

    class Stored:
        def __init__(self, *values):
            self.id = ("storage", torch.FloatStorage, "77", "cpu", 10, values or None)

    class Rebuilt:
        def __init__(self, *arguments):
            self.arguments = arguments

        def __reduce__(self):
            return torch._utils._rebuild_tensor, self.arguments

    state = collections.OrderedDict(
        part=Rebuilt(Stored("78", 4, 6), 1, (2, 2), (2, 1)),
        end=Rebuilt(Stored("79", 9, 1), 0, (1,), (1,)), whole=Rebuilt(Stored(), 0, (10,), (1,)))
    out = io.BytesIO()
    system = {"protocol_version": 1001, "little_endian": True,
              "type_sizes": {"short": 2, "int": 4, "long": 4}}
    for value in (0x1950A86A20F9469CFC6C, 1001, system):
        pickle.dump(value, out, protocol=2)
    Pickler(out, protocol=2).dump(state)
    pickle.dump(["77"], out, protocol=2)
    out.write((10).to_bytes(8, "little") + torch.arange(10.0).numpy().tobytes())
    return out.getvalue()


class Tiny(torch.nn.Module):
    def forward(self, x):
        return x + 1


def bad_files():
    script = io.BytesIO()
    torch.jit.save(torch.jit.script(Tiny()), script)
    yield "script.pt", script.getvalue(), "torch-script"
    yield "module.pt", saved(torch.nn.Linear(2, 2)), "pickle-global"
    # With a stand-in for the source that torch saves with a module: torch's own, and its path here.
    with mock.patch("torch.serialization.get_source_lines_and_file",
                    lambda _: (["pass\n"], 1, "activation.py")):
        legacy = saved(torch.nn.ReLU(), **LEGACY)
    yield "module.legacy", legacy, "pickle-global"
    sparse = {"a": torch.eye(2).to_sparse()}
    yield "sparse.pt", saved(sparse), "pickle-global"
    yield "complex128.pt", saved({"a": torch.zeros(2, dtype=torch.complex128)}), "pickle-global"
    quantised = torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8)
    yield "quantised.pt", saved({"a": quantised}), "pickle-global"
    yield "conjugated.pt", saved({"a": torch.zeros(2, dtype=torch.complex64).conj()}), "pickle-tensor"
    yield "two-states.pt", saved({"model": dict(a=torch.ones(1)), "ema": dict(a=torch.ones(1)),
                                  "step": 1}), "torch-state-dict"
    yield "no-state.pt", saved({"a": 1}), "torch-state-dict"
    yield "tensor.pt", saved(torch.ones(2)), "torch-state-dict"
    yield "list.pt", saved([torch.ones(2)]), "torch-state-dict"
    one = torch.zeros(1)
    many = {f"w{i}": one.expand(4 << 20) for i in range(17)}
    yield "expanded.pt", saved(many), "limit-expanded"
    yield "protocol-4.pt", saved({"a": torch.ones(2)}, pickle_protocol=4), "pickle-opcode"


LEGACY = {"_use_new_zipfile_serialization": False}


def good_files():
    """Name, bytes, and the state dict in them."""
    for name, make in STATES.items():
        state = make()
        state = state.get("state_dict", state.get("model", state))
        yield f"{name}.pt", saved(make()), state
        # torch writes legacy files of its newer dtypes that it cannot read.
        yield f"{name}.legacy", saved(make(), **LEGACY), state
    for name, data in (("big-endian.pt", big_endian()), ("old.pt", old_zip()),
                       ("storage-views.legacy", storage_views())):
        yield name, data, torch.load(io.BytesIO(data), weights_only=False)


def write_sharded(folder):
    folder.mkdir(exist_ok=True)
    weight_map = {}
    for number, name in enumerate(("views", "parameters"), 1):
        shard = f"pytorch_model-{number:05}-of-00002.bin"
        state = STATES[name]()
        torch.save(state, folder / shard)
        weight_map |= {tensor: shard for tensor in state if tensor not in weight_map}
    size = sum(len(bytes_of(t)) for name in ("views", "parameters") for t in STATES[name]().values())
    index = {"metadata": {"total_size": size}, "weight_map": weight_map}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index, indent=2) + "\n")


def write_models():
    """A model as transformers saved it before safetensors."""
    model = OUT.parent / "model" / "bert"
    state = safetensors.torch.load_file(model / "model.safetensors")
    state["cls.predictions.decoder.weight"] = state["bert.embeddings.word_embeddings.weight"]
    for name, how in (("bert", {}), ("bert-legacy", LEGACY)):
        (OUT / name).mkdir(exist_ok=True)
        torch.save(collections.OrderedDict(sorted(state.items())),
                   OUT / name / "pytorch_model.bin", **how)


def check(ckpt):
    """Every good file written again by us."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.bin"
        for name, _, state in good_files():
            path = OUT / "good" / name
            subprocess.run([ckpt, "convert", path, "-o", out, "-q"], check=True)
            expected = "".join(rows_of(name, state))
            for how in ({"weights_only": True}, {"weights_only": True, "mmap": True}):
                if "".join(rows_of(name, torch.load(out, **how))) != expected:
                    sys.exit(f"{name}: torch reads something else")
            print(name, "equal")
            out.unlink()


def main():
    if len(sys.argv) > 1:
        return check(sys.argv[1])
    for folder in ("good", "bad"):
        (OUT / folder).mkdir(parents=True, exist_ok=True)
    rows = ["# made by scripts/goldens/torch_files.py\n"]
    rules = list(rows)
    for name, data, state in good_files():
        (OUT / "good" / name).write_bytes(data)
        rows += rows_of(name, state)
    write_sharded(OUT / "good" / "sharded")
    write_models()
    for name, data, rule in bad_files():
        (OUT / "bad" / name).write_bytes(data)
        rules.append(f"{name}\t{rule}\n")
    (OUT / "good" / "tensors.tsv").write_text("".join(rows))
    (OUT / "bad" / "rules.tsv").write_text("".join(rules))


if __name__ == "__main__":
    main()
