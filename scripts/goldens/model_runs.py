"""What models.py and compare_models.py share: random parameters for a Hugging Face model, and what
Hugging Face computes for a record, in float32 or float64.

float64 means everywhere: transformers casts to float32 inside norms, softmax and rotary tables
whatever the model's dtype; `doubled` replaces these casts. Only tables that are made when the model is
built (inverse rotary frequencies, sinusoids) keep the float32 values that users get.
"""

import contextlib
import json
import sys
import zlib

import numpy as np
import torch
import transformers as tr

torch.set_num_threads(1)
tr.logging.set_verbosity_error()
tr.utils.logging.disable_progress_bar()


class _DoubleTorch:
    """The module torch, with float32 read as float64."""

    def __getattr__(self, name):
        return getattr(torch, "float64" if name in ("float32", "float") else name)


@contextlib.contextmanager
def doubled(on=True):
    """Casts to float32 in transformers' models become casts to float64."""
    if not on:
        yield
        return
    modules = [m for name, m in list(sys.modules.items())
               if name.startswith("transformers.models.") and getattr(m, "torch", None) is torch]
    as_float = torch.Tensor.float
    for module in modules:
        module.torch = _DoubleTorch()
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.Tensor.float = as_float
        for module in modules:
            module.torch = torch


def randomise(model, seed, std):
    """Every parameter of `model`: norm weights 1 + N(0, 0.2), vectors N(0, std), the rest too.

    Rows of padding ids are random like the others: nothing may depend on their being zero.
    """
    generator = torch.Generator().manual_seed(zlib.crc32(seed.encode()))
    norms = {id(m.weight) for m in model.modules()
             if "norm" in type(m).__name__.lower() and getattr(m, "weight", None) is not None}
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.requires_grad:
                continue  # sinusoids
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.2 * noise if id(parameter) in norms else std * noise)


def inputs_of(record, family):
    """Arguments of a forward call of batch 1."""
    arguments = dict(input_ids=torch.tensor([record["ids"]]))
    arguments["attention_mask"] = torch.ones_like(arguments["input_ids"])
    if "seg" in record:
        arguments["token_type_ids"] = torch.tensor([record["seg"]])
    if "pos" in record:
        shift = 2 if family in ("roberta", "mpnet") else 0  # records count from 0, the table's rows from 2
        arguments["position_ids"] = torch.tensor([record["pos"]]) + shift
    return arguments


def forward(model, arguments):
    with torch.no_grad():
        return model(**arguments, output_hidden_states=True, output_attentions=True)


def outputs_of(output, batch=0, rows=None):
    """{name: float64 array} of one line of a batch; `rows` cuts its padding away."""
    def line(tensor):
        return tensor[batch].double()
    result = {"hidden_states": torch.stack([line(h) for h in output.hidden_states])[:, :rows],
              "attentions": torch.stack([line(a) for a in output.attentions])[:, :, :rows, :rows]}
    logits = output.get("logits")
    if logits is not None:
        logits = line(logits)[:rows]
        result["logits"] = logits if logits.dim() == 2 else logits[:, None]
    return {name: tensor.numpy() for name, tensor in result.items()}


def run(model, record, family, double):
    """What transformers makes of one record alone."""
    with doubled(double):
        return outputs_of(forward(model, inputs_of(record, family)))


def run_padded(model, records, family, pad_id, double):
    """The same from one batch, padded on the right and masked."""
    width = max(len(r["ids"]) for r in records)

    def padded(field, fill):
        return [r[field] + [fill] * (width - len(r["ids"])) for r in records]
    arguments = dict(input_ids=torch.tensor(padded("ids", pad_id)))
    arguments["attention_mask"] = torch.tensor([[1] * len(r["ids"]) + [0] * (width - len(r["ids"]))
                                                for r in records])
    if "seg" in records[0]:
        arguments["token_type_ids"] = torch.tensor(padded("seg", 0))
    with doubled(double):
        output = forward(model, arguments)
    return [outputs_of(output, i, len(r["ids"])) for i, r in enumerate(records)]


def make_records(seed, lengths, vocab_size, type_vocab_size=0, pad_id=0, positions=0):
    """Random records without padding; `positions` > 0 adds one whose `pos` jumps, repeats and falls."""
    rng = np.random.default_rng(zlib.crc32(seed.encode()))
    tokens = [i for i in range(vocab_size) if i != pad_id]
    records = []
    for length in lengths:
        record = dict(ids=rng.choice(tokens, length).tolist())
        if type_vocab_size > 1:
            record["seg"] = np.sort(rng.integers(0, type_vocab_size, length)).tolist()
        records.append(record)
    if positions:
        record = {k: v for k, v in records[-2].items()}
        record["pos"] = rng.integers(0, positions, len(record["ids"])).tolist()
        records.append(record)
    return records


def write_records(path, records):
    path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in records))


def largest_difference(a, b):
    assert a.keys() == b.keys(), (a.keys(), b.keys())
    return max(float(np.abs(np.asarray(a[k], np.float64) - b[k]).max()) for k in a)
