#!/usr/bin/env python3
"""Writes tests/data/family: what transformers saves for a small language model of every family.

Per family and variant, a model is built from a config, saved with tied embeddings and saved again
with tie_word_embeddings=False:

  <family>-<variant>.config.json  the config.json of the tied save
  <family>-<variant>.tensors.tsv  name, shape ("101,30"), "tied" or "untied-only"; sorted by name

"tied" rows are all tensors of the tied save; "untied-only" rows appear only in the untied one. No
sizes of a config are equal by chance, so that mixed-up dimensions show. Nothing is downloaded, and
no weights are kept. The same rows with the dtype go to standard output.

Written with transformers 5.23.0, torch 2.15.0, safetensors 0.8.0. Run from anywhere:
  HF_HUB_OFFLINE=1 python scripts/goldens/family_tensors.py
"""

import pathlib
import tempfile

import safetensors
import transformers as tr

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "family"

# Shared by the families with BERT's field names. Heads 3 of width 10.
BERT = dict(
    vocab_size=101, hidden_size=30, num_hidden_layers=2, num_attention_heads=3,
    intermediate_size=47, max_position_embeddings=37, type_vocab_size=2,
)
# Another set for the second variant. Heads 2 of width 11.
BERT_B = dict(
    vocab_size=89, hidden_size=22, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=17, max_position_embeddings=41, type_vocab_size=3,
)

# (family, variant, model class, config fields)
CASES = [
    ("bert", "plain", tr.BertForMaskedLM, BERT),
    ("bert", "nopad", tr.BertForMaskedLM, BERT_B | dict(pad_token_id=None)),
    ("roberta", "plain", tr.RobertaForMaskedLM, BERT | dict(type_vocab_size=1)),
    ("roberta", "xlm", tr.XLMRobertaForMaskedLM, BERT_B | dict(type_vocab_size=1)),
    ("roberta", "camembert", tr.CamembertForMaskedLM, BERT_B),
    ("distilbert", "plain", tr.DistilBertForMaskedLM, dict(
        vocab_size=101, dim=30, n_layers=2, n_heads=3, hidden_dim=47, max_position_embeddings=37)),
    ("distilbert", "sinusoid", tr.DistilBertForMaskedLM, dict(
        vocab_size=89, dim=22, n_layers=1, n_heads=2, hidden_dim=17, max_position_embeddings=41,
        sinusoidal_pos_embds=True)),
    ("albert", "plain", tr.AlbertForMaskedLM, BERT | dict(embedding_size=13)),
    # Its mapping from 22 to 22 stays; 5 layers in 2 groups of 3 different inner layers.
    ("albert", "groups", tr.AlbertForMaskedLM, BERT_B | dict(
        embedding_size=22, num_hidden_layers=5, num_hidden_groups=2, inner_group_num=3)),
    ("electra", "plain", tr.ElectraForMaskedLM, BERT | dict(embedding_size=13)),
    ("electra", "square", tr.ElectraForMaskedLM, BERT_B | dict(embedding_size=22)),
    ("roformer", "plain", tr.RoFormerForMaskedLM, BERT),
    ("roformer", "factorised", tr.RoFormerForMaskedLM, BERT_B | dict(embedding_size=13)),
    ("gpt2", "plain", tr.GPT2LMHeadModel, dict(
        vocab_size=101, n_positions=37, n_embd=30, n_layer=2, n_head=3,
        bos_token_id=1, eos_token_id=1)),
    ("gpt2", "inner", tr.GPT2LMHeadModel, dict(
        vocab_size=89, n_positions=41, n_embd=22, n_layer=1, n_head=2, n_inner=17,
        bos_token_id=1, eos_token_id=1)),
    ("xlnet", "plain", tr.XLNetLMHeadModel, dict(
        vocab_size=101, d_model=30, n_layer=2, n_head=3, d_inner=47)),
    ("xlnet", "uni", tr.XLNetLMHeadModel, dict(
        vocab_size=89, d_model=28, n_layer=1, n_head=7, d_head=4, d_inner=17, attn_type="uni")),
]


def save(model_class, fields):
    """Text of config.json, and {name: (shape, dtype)} of the one weight file."""
    model = model_class(model_class.config_class(**fields))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        folder = pathlib.Path(folder)
        config = (folder / "config.json").read_text()
        assert config == model.config.to_json_string()
        with safetensors.safe_open(folder / "model.safetensors", "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}
            tensors = {n: (tuple(s.get_shape()), s.get_dtype()) for n, s in slices.items()}
    return config, tensors


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for family, variant, model_class, fields in CASES:
        config, tied = save(model_class, fields)
        _, untied = save(model_class, fields | dict(tie_word_embeddings=False))
        assert tied.items() <= untied.items(), "untying changed a tensor"
        rows = []
        print(f"== {family}-{variant} {model_class.__name__}")
        for name, (shape, dtype) in sorted(untied.items()):
            state = "tied" if name in tied else "untied-only"
            shape = ",".join(map(str, shape))
            rows.append(f"{name}\t{shape}\t{state}\n")
            print(f"{name}\t{dtype}\t{shape}\t{state}")
        stem = OUT / f"{family}-{variant}"
        stem.with_suffix(".config.json").write_text(config)
        stem.with_suffix(".tensors.tsv").write_text("".join(rows))


if __name__ == "__main__":
    main()
