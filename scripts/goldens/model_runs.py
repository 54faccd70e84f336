"""What models.py and compare_models.py share: random parameters for a Hugging Face model, and what
Hugging Face computes for a record, in float32 or float64.

float64 means everywhere: transformers casts to float32 inside norms, softmax and rotary tables
whatever the model's dtype; `doubled` replaces these casts. Only tables that are made when the model is
built (inverse rotary frequencies, sinusoids) keep the float32 values that users get.
"""

import copy
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
    """Every parameter of `model`: norm weights 1 + N(0, 0.2), of Gemma, which adds 1, N(0, 0.2); vectors
    N(0, std), the rest too.

    Rows of padding ids are random like the others: nothing may depend on their being zero.
    """
    generator = torch.Generator().manual_seed(zlib.crc32(seed.encode()))
    norms = {id(m.weight) for m in model.modules()
             if "norm" in type(m).__name__.lower() and getattr(m, "weight", None) is not None}
    less_one = "Gemma" in type(model).__name__
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.requires_grad:
                continue  # sinusoids
            noise = torch.randn(parameter.shape, generator=generator)
            one = 0 if less_one else 1
            parameter.copy_(one + 0.2 * noise if id(parameter) in norms else std * noise)


def add_alibi_once():
    """Of Falcon: transformers 5.24 adds ALiBi twice where attention is eager, in the mask and to the scores, and once in its
    default (SDPA). Halves are exact."""
    module = tr.models.falcon.modeling_falcon
    if not hasattr(module, "whole_alibi_tensor"):
        module.whole_alibi_tensor = module.build_alibi_tensor
        module.build_alibi_tensor = lambda *args, **kwargs: module.whole_alibi_tensor(*args, **kwargs) / 2


def expert_parts(name, parameter):
    """The tensors of the file that transformers has as one: name, and how to take it."""
    mixture, _, what = name.rpartition(".experts.")
    old = mixture.replace(".mlp", ".block_sparse_moe")
    inner = parameter.shape[1] // 2
    for e in range(parameter.shape[0]):
        if what == "down_proj":
            for names in ((mixture, "down_proj"), (old, "w2")):
                yield f"{names[0]}.experts.{e}.{names[1]}.weight", lambda t, e=e: t[e]
        else:
            for names in ((mixture, "gate_proj"), (old, "w1")):
                yield f"{names[0]}.experts.{e}.{names[1]}.weight", lambda t, e=e: t[e][:inner]
            for names in ((mixture, "up_proj"), (old, "w3")):
                yield f"{names[0]}.experts.{e}.{names[1]}.weight", lambda t, e=e: t[e][inner:]


def load(folder, model_class, dtype):
    """The saved checkpoint; an error if it is not exactly what the class holds."""
    if "Falcon" in model_class.__name__:
        add_alibi_once()
    model, info = model_class.from_pretrained(
        folder, dtype=dtype, attn_implementation="eager", experts_implementation="eager", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"], info
    return model.to(dtype).eval()  # `dtype` above leaves what the class makes with FloatTensor


def visible_pairs(record):
    """xlnet_order(a,b,...): row i may read j unless j is listed, and i is not listed after it."""
    listed = [int(i) for i in record["mask"].removeprefix("xlnet_order(").rstrip(")").split(",")]
    rank = {position: at for at, position in enumerate(listed)}
    length = len(record["ids"])
    return np.array([[j not in rank or rank.get(i, -1) > rank[j] for j in range(length)] for i in range(length)])


def inputs_of(records, model, pad_id=0):
    """Arguments of a forward call: a batch padded on the right, and masked."""
    width = max(len(r["ids"]) for r in records)

    def padded(field, fill):
        return torch.tensor([r[field] + [fill] * (width - len(r["ids"])) for r in records])
    arguments = dict(input_ids=padded("ids", pad_id), attention_mask=torch.tensor(
        [[1] * len(r["ids"]) + [0] * (width - len(r["ids"])) for r in records]))
    if "seg" in records[0]:
        arguments["token_type_ids"] = padded("seg", 0)
    if "pos" in records[0]:
        arguments["position_ids"] = padded("pos", 0) + first_row(model.config)
    if "mask" in records[0]:
        blocked = torch.ones(len(records), width, width, dtype=model.dtype)
        for at, record in enumerate(records):
            pairs = torch.tensor(visible_pairs(record))
            blocked[at, :len(pairs), :len(pairs)] = (~pairs).to(model.dtype)
        arguments["perm_mask"] = blocked
        arguments["target_mapping"] = torch.eye(width, dtype=model.dtype).expand_as(blocked)
    return arguments


def first_row(config):
    """The row of the position table that position 0 of a record has."""
    if config.model_type == "mpnet":
        return 2
    counted = ("roberta", "xlm-roberta", "camembert", "longformer")
    return config.pad_token_id + 1 if config.model_type in counted else 0


def forward(model, arguments, double):
    """Of T5 the encoder alone."""
    model = model.encoder if model.config.model_type == "t5" else model
    if model.config.model_type == "big_bird":
        model = with_big_bird_attention(model, arguments)
    with torch.no_grad(), doubled(double):
        output = model(**arguments, output_hidden_states=True, output_attentions=True)
        decoder = getattr(model.base_model, "decoder", None)
        if getattr(decoder, "project_out", None) is not None:  # OPT: the last state in front of it, as wide as the others
            project_out, decoder.project_out = decoder.project_out, None
            output.hidden_states = model.base_model(**arguments, output_hidden_states=True).hidden_states
            decoder.project_out = project_out
        if model.config.model_type == "longformer":
            output.attentions = [whole_rows(w) for w in output.attentions]
        if model.config.model_type == "big_bird" and model.base_model.attention_type == "block_sparse":
            output.attentions = [summed_blocks(w, model.config, arguments["input_ids"].shape[1]) for w in output.attentions]
        return output


def with_big_bird_attention(model, arguments):
    """A copy with the attention that it gives itself for this text, but from its first run on, so that weights are recorded."""
    model = copy.deepcopy(model)
    config, length = model.config, arguments["input_ids"].shape[1]
    if length <= (5 + 2 * config.num_random_blocks) * config.block_size:
        model.base_model.set_attention_type("original_full")
    return model


def summed_blocks(weights, config, length):
    """BigBird's weights without the padding that fills its last block. Each of the copies of its first block, which stand
    for random ones, has the weight that it returns once."""
    size = config.block_size
    weights = weights.clone()
    last = (length - 1) // size * size
    weights[:, :, size:last, :size] *= 1 + config.num_random_blocks
    return weights[:, :, :length, :length]


def whole_rows(bands):
    """Longformer's weights, of keys around each query, as (batch, heads, queries, keys)."""
    batch, heads, rows, width = bands.shape
    whole = bands.new_zeros(batch, heads, rows, rows)
    for i in range(rows):
        for k in range(width):
            j = i + k - width // 2
            if 0 <= j < rows:
                whole[:, :, i, j] = bands[:, :, i, k]
    return whole


def outputs_of(output, batch, rows):
    """{name: float64 tensor} of one line of a batch, its padding cut away."""
    def line(tensors):
        return torch.stack([t[batch].double() for t in tensors])
    states, weights = output.hidden_states, output.attentions
    result = {}
    if weights is not None and isinstance(weights[0], tuple):  # XLNet's streams: content, query, content, query
        result["query_states"] = line(states[1::2])[:, :rows]
        result["query_attentions"] = line([w[1] for w in weights])[:, :, :rows, :rows]
        states, weights = states[0::2], [w[0] for w in weights]
    result["hidden_states"] = line(states)[:, :rows]
    if weights is not None:  # FNet has none
        result["attentions"] = line(weights)[:, :, :rows, :rows]
    if output.get("logits") is not None:
        logits = output.logits[batch].double()[:rows]
        result["logits"] = logits if logits.dim() == 2 else logits[:, None]
    return {name: tensor.numpy() for name, tensor in result.items()}


def run(model, records, double, pad_id=0):
    """What transformers makes of a batch of records: a list of {name: array}."""
    output = forward(model, inputs_of(records, model, pad_id), double)
    return [outputs_of(output, i, len(r["ids"])) for i, r in enumerate(records)]


def run_singly(model, records, double):
    return [run(model, [r], double)[0] for r in records]


def make_records(seed, lengths, vocab_size, type_vocab_size=0, pad_id=0, positions=0, orders=False):
    """Random records without padding. `positions` > 0 adds one whose `pos` jumps, repeats and falls;
    `orders` gives each a mask xlnet_order(...) that leaves one position or more unlisted.
    """
    rng = np.random.default_rng(zlib.crc32(seed.encode()))
    tokens = [i for i in range(vocab_size) if i != pad_id]
    records = []
    for length in lengths:
        record = dict(ids=rng.choice(tokens, length).tolist())
        if type_vocab_size > 1:
            record["seg"] = np.sort(rng.integers(0, type_vocab_size, length)).tolist()
        if orders:
            listed = rng.permutation(length)[:max(1, length * 2 // 3)]
            record["mask"] = f"xlnet_order({','.join(map(str, listed))})"
        records.append(record)
    if positions:
        record = dict(records[-2])
        record["pos"] = rng.integers(0, positions, len(record["ids"])).tolist()
        records.append(record)
    return records


def write_records(path, records):
    path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in records))


def differences(some, others):
    """{name: largest absolute difference} over two lists of {name: array}."""
    result = {}
    for a, b in zip(some, others, strict=True):
        assert a.keys() == b.keys(), (a.keys(), b.keys())
        for name in a:
            assert a[name].shape == b[name].shape, (name, a[name].shape, b[name].shape)
            found = np.abs(np.asarray(a[name], np.float64) - b[name]).max()
            result[name] = max(result.get(name, 0.0), float(found))
    return result
