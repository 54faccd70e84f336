#!/usr/bin/env python3
"""What the official reader of a format finds in files: one path a line on standard input, one JSON object a line out.

  differential_peers.py safetensors|torch|npy|npz|gguf|tensorflow|tokenizer

{"tensors": {NAME: [DTYPE, SHAPE, SHA-256 of the row-major little-endian bytes]}} or {"error": "CLASS: MESSAGE"}; of a
tokenizer {"ids": …} of the texts below. For differential.py, which starts it under the Python that has the package.
Each file is read in a process of its own, with limits of memory and time.
"""

import hashlib
import json
import os
import resource
import signal
import sys
import warnings

TEXTS = ["the cats sat on the mat.", "Unbelievable DOGS, naïve café  😀", "a [MASK] b</s><unk> 12345", "", " x\ty "]
USUAL = ["state_dict", "model", "model_state_dict", "module", "net", "ema"]


def digest(data):
    return hashlib.sha256(data).hexdigest()


def read_safetensors(path):
    from safetensors import deserialize

    with open(path, "rb") as file:
        entries = deserialize(file.read())
    return {name: [entry["dtype"], list(entry["shape"]), digest(bytes(entry["data"]))] for name, entry in entries}


TORCH = {"bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32",
         "uint64": "U64", "int64": "I64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
         "complex64": "C64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e4m3fnuz": "F8_E4M3FNUZ",
         "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0", "float4_e2m1fn_x2": "F4"}


def state_dict(value, torch):
    """The dict of tensors, by the rule of lib/store/torch/torch_state.cpp."""
    if not isinstance(value, dict):
        raise LookupError("no state dict")

    def count(v):
        return sum(isinstance(t, torch.Tensor) for t in v.values()) if isinstance(v, dict) else 0

    found = []
    for key in USUAL:
        if count(value.get(key)) > 0 and all(value[key] is not other for other in found):
            found.append(value[key])
    if count(value) > 0 and all(count(other) < count(value) for other in found):
        return value
    if len(found) == 1:
        return found[0]
    if not found and not value:
        return value
    raise LookupError("no state dict, or several")


def read_torch(path):
    import torch

    out = {}
    for name, tensor in state_dict(torch.load(path, map_location="cpu", weights_only=True), torch).items():
        if not isinstance(tensor, torch.Tensor):
            continue
        if not isinstance(name, str):
            raise LookupError("a key that is no text")
        kind = str(tensor.dtype).removeprefix("torch.")
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_conj() or tensor.is_neg() or kind not in TORCH:
            raise LookupError("no plain tensor: " + kind)
        shape = list(tensor.shape)
        data = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        if kind == "float4_e2m1fn_x2" and shape:
            shape[-1] *= 2
        out[name] = [TORCH[kind], shape, digest(data)]
    return out


def of_array(array):
    import numpy

    names = {"b1": "BOOL", "f2": "F16", "f4": "F32", "f8": "F64", "c8": "C64", "c16": "COMPLEX128"}
    kind = array.dtype.str[1:]
    name = names.get(kind) or {"i": "I", "u": "U"}.get(kind[0], "?") + str(8 * array.dtype.itemsize)
    if array.dtype.kind not in "biufc" or name == "?":
        raise LookupError("no plain type: " + array.dtype.str)
    little = numpy.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    return [name, list(array.shape), digest(little.tobytes())]


def read_npy(path):
    import numpy

    return {"array": of_array(numpy.load(path, allow_pickle=False))}


def read_npz(path):
    import numpy

    with numpy.load(path, allow_pickle=False) as file:
        return {name: of_array(file[name]) for name in file.files}


def read_gguf(path):
    import gguf

    reader = gguf.GGUFReader(path)
    names = {"F32": "F32", "F16": "F16", "BF16": "BF16", "F64": "F64", "I8": "I8", "I16": "I16", "I32": "I32", "I64": "I64"}
    out = {}
    for tensor in reader.tensors:
        kind = tensor.tensor_type.name
        shape = [int(size) for size in reversed(tensor.shape)]
        out[tensor.name] = [names.get(kind, kind), shape, digest(tensor.data.tobytes())]
    return out


def read_tensorflow(path):
    import tensorflow as tf

    reader = tf.train.load_checkpoint(path.removesuffix(".index"))
    names = {"bool": "BOOL", "half": "F16", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
             "complex64": "C64", "float8_e5m2": "F8_E5M2", "float8_e4m3fn": "F8_E4M3", "float8_e4m3fnuz": "F8_E4M3FNUZ",
             "float8_e5m2fnuz": "F8_E5M2FNUZ"}
    for bits in (8, 16, 32, 64):
        names[f"int{bits}"], names[f"uint{bits}"] = f"I{bits}", f"U{bits}"
    out = {}
    kinds = reader.get_variable_to_dtype_map()
    for name, shape in sorted(reader.get_variable_to_shape_map().items()):
        kind = kinds[name].name
        value = reader.get_tensor(name)
        # What masque lists, and looks at no further.
        out[name] = [names[kind], list(shape), digest(value.tobytes())] if kind in names else [kind.upper(), list(shape), ""]
    return out


def read_tokenizer(path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    return [[id for id in tokenizer.encode(text, add_special_tokens=False).ids] for text in TEXTS]


def out_of_time(*_):
    raise TimeoutError("five seconds")


def limited(kind, read, path):
    """What is found, or the error, with limits of memory and time."""
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(5)
    try:
        found = read(path)
        return {"ids": found} if kind == "tokenizer" else {"tensors": found}
    except BaseException as error:  # pyo3's panics, too
        return {"error": f"{type(error).__name__}: {error}"[:400]}


def apart(kind, read, path):
    """The same in a process of its own, which a file may end."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        with os.fdopen(into, "w") as pipe:
            pipe.write(json.dumps(limited(kind, read, path)))
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(text) if text else {"error": f"Crash: signal {os.WTERMSIG(status)}"}


def main():
    kind = sys.argv[1]
    read = globals()["read_" + kind]
    warnings.simplefilter("ignore")
    # Imports first: the limits are for the files.
    {"safetensors": lambda: __import__("safetensors"), "torch": lambda: __import__("torch"), "gguf": lambda: __import__("gguf"),
     "tensorflow": lambda: __import__("tensorflow"), "tokenizer": lambda: __import__("tokenizers")}.get(
         kind, lambda: __import__("numpy"))()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(apart(kind, read, line.rstrip("\n"))), flush=True)


if __name__ == "__main__":
    main()
