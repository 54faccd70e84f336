"""Compares models in transformers before and after `ckpt-grow`, for every family, rule and kind of vocabulary.

    grown_logits.py BIN_DIR DATA_DIR

For each config of DATA_DIR/family, tied and untied, a random checkpoint is made, and noise is added to every tensor: nothing is
symmetric or zero. It is grown by every rule, or refused where the design cannot grow. The larger model must load without missing or
unexpected tensors and give the same logits (T5's encoder, which has no head: the same last states); by rules that make another
function, finite ones. The tensors of wider BERTs and LLaMAs must be, bit for bit, those that the definition in
this file gives. Exit 77 (skipped) without torch and transformers.
"""
import collections
import glob
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from unittest import mock

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "goldens"))
try:
    import safetensors.torch
    import torch
    import transformers

    import diffusion_classes
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

INNER = ("intermediate_size", "n_inner", "hidden_dim", "d_ff", "d_inner", "ffn_dim", "ffn_hidden_size", "mlp_hidden_size")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
POST_NORM = ("albert", "bert", "big_bird", "camembert", "deberta-v2", "distilbert", "electra", "fnet", "longformer", "mpnet", "nomic_bert", "roberta", "roformer",
             "xlm-roberta", "xlnet")
# Rules that are refused: positions that are no copies, layers that share weights and cannot add nothing, groups that would move.
REFUSED = {"xlnet-plain": "width", "xlnet-uni": "width", "albert-plain": "identity|zero", "albert-groups": "depth",
           "bloom-plain": "width", "mpt-plain": "width", "falcon-groups": "width", "falcon-rw": "width", "fnet-plain": "width", "llama-stablelm": "width"} | {
               f"llama-{name}": "width" for name in ("gemma", "gemma2", "gemma3", "mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "gpt_oss")}


def rules_of(config):
    """The command, whether it gets a checkpoint in f64, the largest difference as a share of the largest value (None: another function).

    Halves are exact in f32. Thirds and unequal shares are rounded to the stored type: to f64, so that they have the same bound.
    A post-norm layer that adds nothing normalizes once more (lib/grow/README.md). DistilBERT's config does not say its epsilon.
    """
    heads, layers = (next(config[key] for key in keys if key in config) for keys in (HEADS, LAYERS))
    part = f"--factor {1.5 if heads % 2 == 0 else 4 / 3}"
    # ALBERT's layers are counted as they run.
    deep = f"--layers {(2 * layers + 1) * config.get('inner_group_num', 1)}"
    pre_norm, epsilons = config["model_type"] not in POST_NORM, 20 * config.get("layer_norm_eps", 1e-12)
    yield "width --how equal", False, 1e-12
    yield "width --how equal --factor 3", True, 1e-12
    yield "width --how unequal --seed 1", True, 1e-12
    yield f"depth --how identity {deep}", False, 1e-13 if pre_norm else epsilons
    yield f"depth --how zero {deep}", False, 1e-13 if pre_norm else epsilons
    yield f"both --width equal --depth identity {deep}", False, 1e-12 if pre_norm else epsilons
    yield f"both --width unequal --depth zero {deep}", True, 1e-12 if pre_norm else epsilons
    for other in (f"width --how fpi {part}", f"width --how aki {part}", f"depth --how interleave {deep}", f"depth --how stack {deep}"):
        yield other, False, None


def class_of(config):
    """The class of transformers, or of those that it lacks; None if neither has it."""
    name = config["architectures"][0]
    return getattr(transformers, name, None) or getattr(diffusion_classes, name, None)


def run(bin_dir, *command):
    return subprocess.run([os.path.join(bin_dir, command[0]), *command[1:]], capture_output=True, text=True)


def make(bin_dir, config, work):
    """Folders of a random checkpoint in f32, and of the same values in f64."""
    path, small, double = (os.path.join(work, name) for name in ("config.json", "small", "double"))
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    made = run(bin_dir, "ckpt", "new", path, "-o", small, "--seed", "3")
    assert made.returncode == 0, made.stderr
    weights = os.path.join(small, "model.safetensors")
    draw = torch.Generator().manual_seed(3)
    # RoFormer's table of sinusoids is no weight.
    tensors = {name: tensor if name.endswith("encoder.embed_positions.weight") else
               tensor + 0.2 * torch.randn(tensor.shape, generator=draw) for name, tensor in tensors_of(small).items()}
    safetensors.torch.save_file(tensors, weights, metadata={"format": "pt"})
    made = run(bin_dir, "ckpt", "convert", small, "-o", double, "--dtype", "F64")
    assert made.returncode == 0, made.stderr
    return small, double


def tensors_of(folder):
    return safetensors.torch.load_file(os.path.join(folder, "model.safetensors"))


def output_of(folder, config):
    """Logits, or the last states of a model without a head, of the tokens of two sequences.

    Padding is left out: none reads its states, and DeBERTa sets them to 0 after its first layer alone.
    """
    model, info = class_of(config).from_pretrained(
        folder, dtype=torch.float64, output_loading_info=True, attn_implementation="eager")
    # New checkpoints and deeper ones have no head of contacts (ESM).
    info["missing_keys"] = {key for key in info["missing_keys"] if "contact_head" not in key and "inv_freq" not in key}
    assert not any(info.values()), (folder, info)
    ids = torch.randint(6, config["vocab_size"], (2, 24), generator=torch.Generator().manual_seed(5))
    mask = (torch.arange(24) < torch.tensor([[24], [17]])).long()
    # XLNet with causal attention cannot have padding in transformers: its masks do not fit.
    inputs = {"input_ids": ids} if config.get("attn_type") == "uni" else {"input_ids": ids, "attention_mask": mask}
    if config.get("type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = ids % config["type_vocab_size"]
    # Norms and softmax of several families go through f32, which would hide all below 1e-7.
    with torch.no_grad(), mock.patch.object(torch, "float32", torch.float64), \
            mock.patch.object(torch.Tensor, "float", torch.Tensor.double):
        output = model.eval().double()(**inputs)
    return (output.logits if "logits" in output else output.last_hidden_state)[mask > 0]


def definition(config):
    """Of `width --how equal`: patterns of names, elements of a unit along each axis (0: it stays), and what the tensor is divided by."""
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    last = 2 if config["tie_word_embeddings"] else 1
    if config["model_type"] == "bert":
        return [(r"_embeddings\.weight", (0, 1), 1), (r"decoder\.weight", (0, 1), 2), (r"predictions\.(decoder\.)?bias", (0,), 1),
                (r"(query|key|value)\.weight", (head, 1), 2), (r"(query|key|value)\.bias", (head,), 1),
                (r"attention\.output\.dense\.weight", (1, head), 2), (r"dense\.weight", (1, 1), 2), (r"dense\.bias", (1,), 1),
                (r"transform\.LayerNorm", (1,), last), (r"LayerNorm", (1,), 1)]
    # A key's head is copied together with the heads of all queries that share it.
    group = head * config["num_attention_heads"] // config["num_key_value_heads"]
    return [(r"embed_tokens", (0, 1), 1), (r"lm_head", (0, 1), 2), (r"q_proj\.weight", (group, 1), 2), (r"q_proj\.bias", (group,), 1),
            (r"[kv]_proj\.weight", (head, 1), 2), (r"[kv]_proj\.bias", (head,), 1), (r"o_proj\.weight", (1, group), 2),
            (r"_proj\.weight", (1, 1), 2), (r"_proj\.bias", (1,), 1), (r"model\.norm", (1,), last), (r"norm\.weight", (1,), 1)]


def undefined(small, grown, config):
    """Names of tensors that are not, bit for bit, what the definition gives."""
    small, grown = ({name: tensor.double() for name, tensor in tensors_of(folder).items()} for folder in (small, grown))
    wrong = sorted(small.keys() ^ grown.keys())
    for name in sorted(small.keys() & grown.keys()):
        value = small[name]
        units, share = next((units, share) for pattern, units, share in definition(config) if re.search(pattern, name))
        for axis, unit in enumerate(units):
            if unit:
                value = value.unflatten(axis, (-1, unit)).repeat_interleave(2, axis).flatten(axis, axis + 1)
        if not torch.equal(value / share, grown[name]):
            wrong.append(name)
    return wrong


def check_rule(name, config, expected, folder, out, rule, bound, bin_dir):
    """What is found, and whether it is ok, refused as expected, or BAD."""
    grown = run(bin_dir, "ckpt-grow", *rule.split(), folder, "-o", out)
    said = f"exit {grown.returncode}: {grown.stderr.strip()}".replace("\n", " ")
    tied_norm = name == "llama-olmo" and config["tie_word_embeddings"] and "width" in rule  # without weights to divide
    if tied_norm or re.search(REFUSED.get(name, "none"), rule):
        refused = grown.returncode == 2 and re.search("cannot make this model (wider|deeper): ", said) and not os.path.exists(out)
        return said, "refused" if refused else "BAD"
    if grown.returncode != 0:
        return said, "BAD"
    found = output_of(out, config)
    if bound is None and found.shape != expected.shape:
        return "finite", "ok" if found.isfinite().all() else "BAD"
    # States of copies stand next to each other.
    found = found.unflatten(-1, (expected.shape[-1], -1))
    difference = (found - expected[..., None]).abs().max().item() / max(1, expected.abs().max().item())
    wrong = undefined(folder, out, config) if rule == "width --how equal" and config["model_type"] in ("bert", "llama") else []
    # That other functions differ shows that the comparison sees it.
    good = not wrong and (difference <= bound if bound is not None else 1e-6 < difference < math.inf)
    return f"{difference:.2g}{f', not as defined: {wrong}' if wrong else ''}", "ok" if good else "BAD"


def main():
    bin_dir, data_dir = sys.argv[1:]
    paths = sorted(glob.glob(os.path.join(data_dir, "family", "*.config.json")))
    assert paths
    total = collections.Counter(BAD=0)
    for path in paths:
        name = os.path.basename(path).split(".")[0]
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        if class_of(config) is None:
            print(name, "transformers does not have it", sep="\t")
            continue
        # Sizes of the golden configs are odd: one more can grow by a half or a third.
        config.update({key: config[key] + 1 for key in INNER if config.get(key)})
        for tied in (True, False):
            config[getattr(class_of(config), "TIE", "tie_word_embeddings")] = tied
            with tempfile.TemporaryDirectory() as work:
                folders = make(bin_dir, config, work)
                expected = output_of(folders[0], config)
                for i, (rule, double, bound) in enumerate(rules_of(config)):
                    out = os.path.join(work, str(i))
                    text, result = check_rule(name, config, expected, folders[double], out, rule, bound, bin_dir)
                    total[result] += 1
                    print(name, "tied" if tied else "untied", rule, text, result, sep="\t", flush=True)
    print(*(f"{count} {result}" for result, count in total.items()), sep=", ")
    sys.exit(total["BAD"] > 0)


if __name__ == "__main__":
    main()
