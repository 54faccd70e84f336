#!/usr/bin/env python3
"""Writes tests/data/tensorflow: checkpoints made by TensorFlow, and what is in them.

  good/NAME.index, NAME.data-…
    dtypes       every type that SaveV2 takes, a scalar, tensors without elements
    adam         names and shapes of Google's BERT, with Adam's slots and global_step, by a V1 Saver
    shards       the same tensors in two data files, merged by MergeV2Checkpoints
    partitioned  variables cut along their first and second dimension by partitioners
    grid         tensors cut along two dimensions, their slices in several data files
    keras        tf.train.Checkpoint of a Keras model and its optimizer: an object graph
    snappy       the index of `adam` written again: several blocks, packed by Snappy
    blocks       the same, several blocks, not packed
  good/checkpoint     what TensorFlow writes next to them; its path leads elsewhere
  good/tensors.tsv    prefix, name, dtype, shape, SHA-256 of the row-major little-endian bytes
  good/opaque.tsv     prefix, name, TensorFlow's type, shape, bytes
  v1/model.ckpt       a checkpoint of the first version

Each is read back by TensorFlow before it is described. Written with tensorflow-cpu 2.21.0, Python 3.11.
Run from anywhere.
"""

import hashlib
import json
import os
import pathlib
import shutil
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import types_pb2  # noqa: E402
from tensorflow.core.protobuf import tensor_bundle_pb2  # noqa: E402

from leveldb_tables import build_table, entries_of  # noqa: E402

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "tensorflow"
v1 = tf.compat.v1

NAMES = {
    tf.bool: "BOOL", tf.uint8: "U8", tf.int8: "I8", tf.int16: "I16", tf.uint16: "U16", tf.int32: "I32",
    tf.uint32: "U32", tf.int64: "I64", tf.uint64: "U64", tf.float16: "F16", tf.bfloat16: "BF16",
    tf.float32: "F32", tf.float64: "F64", tf.complex64: "C64",
    tf.dtypes.experimental.float8_e5m2: "F8_E5M2", tf.dtypes.experimental.float8_e4m3fn: "F8_E4M3",
    tf.dtypes.experimental.float8_e4m3fnuz: "F8_E4M3FNUZ",
    tf.dtypes.experimental.float8_e5m2fnuz: "F8_E5M2FNUZ",
}
TYPE_NAMES = {number: name.removeprefix("DT_") for name, number in types_pb2.DataType.items()}
OPAQUE = [tf.complex128, tf.string, tf.dtypes.experimental.int4, tf.dtypes.experimental.uint4,
          tf.dtypes.experimental.float8_e4m3b11fnuz, tf.qint8, tf.quint8, tf.qint32]


def patterned(dtype, shape, seed):
    """Values that differ, finite where the type can say so."""
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == tf.string:
        return np.array([b"x" * (seed + 70 * i) for i in range(count)], dtype=object).reshape(shape)
    numbers = (np.arange(count) * 7 + seed) % 23
    if dtype == tf.bool:
        numbers = numbers % 2
    if dtype in (tf.dtypes.experimental.int4, tf.dtypes.experimental.uint4):
        numbers = numbers % 8
    values = numbers.reshape(shape).astype(dtype.as_numpy_dtype)
    if dtype in (tf.float32, tf.float64, tf.complex64, tf.complex128):
        values = values / 8 - 1
    return values.astype(dtype.as_numpy_dtype)


def save(prefix, tensors, slices=None):
    names = list(tensors)
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names,
                      shape_and_slices=[(slices or {}).get(n, "") for n in names],
                      tensors=[tensors[n] for n in names])


def merge(parts, prefix):
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[str(p) for p in parts],
                                  destination_prefix=str(prefix), delete_old_dirs=False)


def bert(seed=0):
    shapes = {"bert/embeddings/word_embeddings": (11, 4), "bert/embeddings/LayerNorm/gamma": (4,),
              "bert/encoder/layer_0/output/dense/kernel": (8, 4), "cls/predictions/output_bias": (11,)}
    out = {}
    for i, (name, shape) in enumerate(shapes.items()):
        for slot in ("", "/adam_m", "/adam_v"):
            out[name + slot] = tf.constant(patterned(tf.float32, shape, seed + i + len(slot)))
    out["global_step"] = tf.constant(1000, tf.int64)
    return out


def make_dtypes():
    tensors = {}
    for i, dtype in enumerate([*NAMES, *OPAQUE]):
        quantised = dtype in (tf.qint8, tf.quint8, tf.qint32)
        base = {tf.qint8: tf.int8, tf.quint8: tf.uint8, tf.qint32: tf.int32}.get(dtype, dtype)
        value = tf.constant(patterned(base, (2, 3), i), dtype=base)
        tensors["all/" + dtype.name] = tf.bitcast(value, dtype) if quantised else value
    tensors["scalar"] = tf.constant(2.5)
    tensors["nothing"] = tf.zeros((0, 4))
    tensors["nothing/strings"] = tf.constant([], tf.string)
    tensors["Ünïcode/名前"] = tf.constant([1.0, 2.0])
    save(OUT / "good" / "dtypes", tensors)


def make_adam():
    with tf.Graph().as_default(), v1.Session() as session:
        variables = {name: v1.Variable(value.numpy()) for name, value in EAGER.items()}
        session.run(v1.global_variables_initializer())
        v1.train.Saver(variables).save(session, str(OUT / "good" / "adam"), write_meta_graph=False)


def make_v1():
    (OUT / "v1").mkdir(parents=True)
    with tf.Graph().as_default(), v1.Session() as session:
        v = v1.Variable(patterned(tf.float32, (2, 3), 1), name="w")
        session.run(v1.global_variables_initializer())
        saver = v1.train.Saver({"w": v}, write_version=v1.train.SaverDef.V1)
        saver.save(session, str(OUT / "v1" / "model.ckpt"), write_meta_graph=False,
                   write_state=False)


def make_shards(scratch):
    tensors = bert(5)
    tensors["text"] = tf.constant([b"a", b"", b"bcd"])
    names = sorted(tensors)
    save(scratch / "a", {n: tensors[n] for n in names[::2]})
    save(scratch / "b", {n: tensors[n] for n in names[1::2]})
    merge([scratch / "a", scratch / "b"], OUT / "good" / "shards")


def make_partitioned():
    with tf.Graph().as_default(), v1.Session() as session:
        for name, shape, axis in (("rows", (100, 3), 0), ("columns", (3, 70), 1), ("cube", (2, 5, 2), 1)):
            v1.get_variable(name, initializer=tf.constant(patterned(tf.float32, shape, axis)),
                            partitioner=v1.fixed_size_partitioner(3, axis=axis))
        v1.get_variable("whole", initializer=np.arange(5, dtype=np.int32))
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(OUT / "good" / "partitioned"), write_meta_graph=False,
                              write_state=False)


def make_grid(scratch):
    table = patterned(tf.float32, (9, 200), 3)
    numbers = patterned(tf.uint8, (9000,), 1)
    for i, (top, height) in enumerate([(0, 4), (4, 5)]):
        for k, (left, width) in enumerate([(0, 64), (64, 66), (130, 70)]):
            # SaveV2 names a tensor once: each slice is saved by a call of its own.
            path = scratch / f"grid{i}{k}"
            save(path, {"table": tf.constant(table[top:top + height, left:left + width])},
                 {"table": f"9 200 {top},{height}:{left},{width}"})
    for i, (begin, count) in enumerate([(0, 100), (100, 8200), (8300, 700)]):
        save(scratch / f"numbers{i}", {"numbers": tf.constant(numbers[begin:begin + count])},
             {"numbers": f"9000 {begin},{count}"})
    save(scratch / "rest", {"bias": tf.constant([1.0])})
    parts = [scratch / p for p in ("grid00", "grid11", "grid02", "grid10", "grid01", "grid12",
                                   "numbers1", "rest", "numbers2", "numbers0")]
    merge(parts, OUT / "good" / "grid")


def make_keras():
    model = tf.keras.Sequential([tf.keras.layers.Embedding(7, 4, name="table"),
                                 tf.keras.layers.Dense(3, name="dense")])
    optimizer = tf.keras.optimizers.Adam()
    ids = tf.constant([[1, 2]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(ids))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables),
                                  model.trainable_variables))
    for i, v in enumerate([*model.variables, *optimizer.variables]):
        if v.dtype == "float32":
            v.assign(patterned(tf.float32, v.shape, i))
    step = tf.Variable(5, dtype=tf.int64, name="my_step")
    tf.train.Checkpoint(model=model, optimizer=optimizer, step=step).write(str(OUT / "good" / "keras"))


def make_repacked():
    good = OUT / "good"
    rows = entries_of((good / "adam.index").read_bytes())
    for name, per_block, pack in (("snappy", 6, True), ("blocks", 3, False)):
        (good / f"{name}.index").write_bytes(build_table(rows, per_block, pack))
        shutil.copy(good / "adam.data-00000-of-00001", good / f"{name}.data-00000-of-00001")


def describe():
    good, tensors, opaque = OUT / "good", [], []
    for index in sorted(good.glob("*.index")):
        reader = tf.train.load_checkpoint(str(index)[:-6])
        sizes = {key: value for key, value in entries_of_any(index)}
        for name, shape in sorted(reader.get_variable_to_shape_map().items()):
            dtype = reader.get_variable_to_dtype_map()[name]
            row = [index.name[:-6], json.dumps(name)]
            text = "[" + ",".join(map(str, shape)) + "]"
            if dtype in NAMES:
                value = np.ascontiguousarray(reader.get_tensor(name))
                digest = hashlib.sha256(value.tobytes()).hexdigest()
                tensors.append([*row, NAMES[dtype], text, digest])
            else:
                kind = tf.as_dtype(dtype).as_datatype_enum
                opaque.append([*row, TYPE_NAMES[kind], text, str(sizes[name.encode()])])
    for name, rows in (("tensors", tensors), ("opaque", opaque)):
        (good / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))


def entries_of_any(index):
    """Name and bytes of each entry; of the repacked ones those of what they were made from."""
    path = index.with_name("adam.index") if index.stem in ("snappy", "blocks") else index
    for key, value in entries_of(path.read_bytes()):
        if key and not key.startswith(b"\0"):
            yield key, tensor_bundle_pb2.BundleEntryProto.FromString(value).size


EAGER = bert()


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    (OUT / "good").mkdir(parents=True)
    make_dtypes()
    make_adam()
    make_v1()
    make_partitioned()
    make_keras()
    with tempfile.TemporaryDirectory() as scratch:
        make_shards(pathlib.Path(scratch))
        make_grid(pathlib.Path(scratch))
    make_repacked()
    describe()
    (OUT / "good" / "checkpoint").write_text('model_checkpoint_path: "/home/someone/adam"\n'
                                             'all_model_checkpoint_paths: "/home/someone/adam"\n')


if __name__ == "__main__":
    sys.exit(main())
