#!/usr/bin/env python3
"""Writes tests/data/evaluate/cross_encoder, a BERT with one label and random weights, and prints what predict() of the CrossEncoder of
sentence-transformers makes of pairs of texts, with each place of the activation: what tests/cli/cross_encoder.transcript expects of
lm-score score --pairs. Versions: torch 2.15.0, transformers 5.24.0, sentence-transformers 6.2.0.
"""

import json
import pathlib
import shutil
import tempfile

import sentence_transformers
import torch
import transformers

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "evaluate" / "cross_encoder"
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the a cat cats dog dogs sat sits sit on mat . un ##believ ##able query : passage".split()
PAIRS = [("the cat", "a dog sat on the mat ."), ("dogs", ""), ("", "unbelievable"), ("query : cats", "the cats sit")]
IDENTITY, TANH = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Tanh"
MODULES = [dict(idx=0, name="0", path="", type="sentence_transformers.base.modules.transformer.Transformer")]
TASK = dict(transformer_task="sequence-classification", modality_config=dict(text=dict(method="forward", method_output_name="logits")),
            module_output_name="scores")
# The files that a case changes.
CASES = {
    "as_it_is": {},
    "config": {"config.json": dict(sentence_transformers=dict(activation_fn=IDENTITY))},
    "old_config": {"config.json": dict(sbert_ce_default_activation_function=TANH)},
    "folder": {"config.json": dict(sbert_ce_default_activation_function=TANH),
               "config_sentence_transformers.json": dict(model_type="CrossEncoder", activation_fn=IDENTITY), "modules.json": MODULES,
               "sentence_bert_config.json": TASK},
    "folder_without_modules": {"config.json": dict(sbert_ce_default_activation_function=TANH),
                               "config_sentence_transformers.json": dict(model_type="CrossEncoder", activation_fn=IDENTITY)},
}


def write_model():
    torch.manual_seed(5)
    config = transformers.BertConfig(vocab_size=len(WORDS), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
                                     max_position_embeddings=20, num_labels=1)
    model = transformers.BertForSequenceClassification(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.4)
    shutil.rmtree(OUT, ignore_errors=True)
    model.save_pretrained(OUT)
    (OUT / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (OUT / "tokenizer_config.json").write_text(json.dumps(dict(tokenizer_class="BertTokenizer", do_lower_case=True)) + "\n")


def main():
    write_model()
    for name, files in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            shutil.copytree(OUT, folder, dirs_exist_ok=True)
            for file, changed in files.items():
                path = folder / file
                old = json.loads(path.read_text()) if path.exists() else {}
                path.write_text(json.dumps(changed if isinstance(changed, list) else old | changed))
            model = sentence_transformers.CrossEncoder(str(folder), device="cpu", local_files_only=True)
            print(name, " ".join(f"{float(model.predict([pair])[0]):.5g}" for pair in PAIRS))


if __name__ == "__main__":
    main()
