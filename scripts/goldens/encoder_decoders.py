#!/usr/bin/env python3
"""Writes tests/data/encoder_decoder: tiny random encoder–decoders, sources and targets, and what belongs to them.

  CASE/config.json, model.safetensors   every parameter random; generation_config.json is left out
  CASE/records.jsonl                    source_ids, and ids, which the decoder reads: lengths 1, 2, 7, 20 in turn
  CASE/expected.safetensors             of line i, computed in float64, stored in float32: i.hidden_states, i.logits,
                                        i.attentions of the decoder, i.encoder_hidden_states, i.encoder_attentions,
                                        i.cross_attentions
  t5/tokenizer.json                     a token for each word, for the pages of the tools
  CASE/generated.jsonl                  options of transformers' generate, and the texts of every source, without the
                                        token that begins them

  ../target_languages/KIND              tokenizers of mBART, ids of sources and targets, and scores by the case mbart

With arguments: only the cases whose names begin with one of them.
Run with HF_HUB_OFFLINE=1. Versions: torch 2.15.0, transformers 5.24.0, safetensors 0.8.0.
"""

import json
import pathlib
import shutil
import sys

import numpy as np
import safetensors.numpy
import safetensors.torch
import tokenizers
import torch
import transformers as tr

import model_runs as runs

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "encoder_decoder"
STD = {"t5": 0.2, "mt5": 0.2, "mbart": 0.3}
WIDE = 0.4
LENGTHS = [(7, 2), (1, 7), (20, 20), (2, 1)]
T5 = dict(vocab_size=40, d_model=24, d_kv=6, d_ff=32, num_layers=2, num_decoder_layers=2, num_heads=3,
          relative_attention_num_buckets=8, relative_attention_max_distance=12, decoder_start_token_id=0, eos_token_id=19)
# Published files have a head of their own, next to a table that no class reads.
HEAD = {"lm_head.weight": (40, 24), "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": (32, 3)}
CASES = {
    "t5": (tr.T5ForConditionalGeneration, T5 | dict(num_decoder_layers=3), {}, {}),
    "t5_untied": (tr.T5ForConditionalGeneration,
                  T5 | dict(feed_forward_proj="gated-gelu", relative_attention_num_buckets=32,
                            relative_attention_max_distance=128), dict(tie_word_embeddings=False), HEAD),
    "mt5": (tr.MT5ForConditionalGeneration, T5 | dict(num_layers=1, layer_norm_epsilon=1e-2), {}, {}),
}
BART = dict(vocab_size=40, d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3,
            decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=20, max_position_embeddings=20)
CASES |= {
    "bart": (tr.BartForConditionalGeneration, BART, {}, {}),
    "bart_scaled": (tr.BartForConditionalGeneration, BART | dict(
        scale_embedding=True, activation_function="relu", tie_word_embeddings=False, decoder_layers=1), {}, {}),
    "mbart": (tr.MBartForConditionalGeneration, BART | dict(decoder_start_token_id=5, scale_embedding=True), {}, {}),
}
GENERATE = [
    dict(max_new_tokens=12),
    dict(max_new_tokens=12, num_beams=4, num_return_sequences=2),
    dict(max_new_tokens=9, num_beams=3, length_penalty=2.0, early_stopping=True),
    dict(max_new_tokens=12, repetition_penalty=1.7, no_repeat_ngram_size=2, min_new_tokens=5),
    dict(max_new_tokens=8, forced_bos_token_id=9, forced_eos_token_id=1, begin_suppress_tokens=[5, 6, 7, 8]),
    # Lengths with the token that begins targets, and the default, which ends with BART's positions.
    dict(max_length=7, min_length=30),
    dict(max_length=20, min_length=30, num_beams=2),
    dict(min_length=30),
]
# Tokenizers with a language around texts: LANGUAGES/KIND, its ids of sources and targets, and scores by the case mbart.
LANGUAGES = OUT.parent / "target_languages"
PIECES = ["▁the", "▁cat", "▁sat", "▁a", "▁dog", "▁was", "▁red", "▁", "t", "h"]
TEXTS = [("the cat sat", "a dog was red"), ("the dog", "the"), ("a", "cat th")]


def build(folder, name):
    model_class, fields, edits, more = CASES[name]
    model = model_class(model_class.config_class(**fields))
    std = STD.get(name.split("_")[0], WIDE)
    runs.randomise(model, name, std)
    generator = torch.Generator().manual_seed(7)
    for key, buffer in model.named_buffers():
        if key == "final_logits_bias":
            buffer.copy_(std * torch.randn(buffer.shape, generator=generator))
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink()  # config.json says it, too
    path = folder / "config.json"
    config = json.loads(path.read_text()) | edits
    if edits:
        config.pop("scale_decoder_outputs", None)
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    if more:
        tensors = safetensors.torch.load_file(folder / "model.safetensors")
        tensors |= {key: std * torch.randn(shape, generator=generator) for key, shape in more.items()}
        safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return [load(folder, model_class, dtype) for dtype in (torch.float32, torch.float64)]


def write_tokenizer(folder, size, eos):
    words = "the cat dog a sat on mat ran big small red house saw it and was under tree".split()
    vocabulary = ["<pad>", "<unk>", *words]
    vocabulary = vocabulary[:eos] + ["</s>"] + vocabulary[eos:]
    vocabulary += [f"w{i}" for i in range(len(vocabulary), size)]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(vocabulary)}, "<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing("$A </s>", None, [("</s>", eos)])
    tr.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>",
                               unk_token="<unk>").save_pretrained(folder)


def load(folder, model_class, dtype):
    model, info = model_class.from_pretrained(folder, dtype=dtype, attn_implementation="eager",
                                              output_loading_info=True)
    assert not info["missing_keys"], info
    return model.to(dtype).eval()


def outputs_of(model, record, double):
    with torch.no_grad(), runs.doubled(double):
        out = model(input_ids=torch.tensor([record["source_ids"]]), decoder_input_ids=torch.tensor([record["ids"]]),
                    output_hidden_states=True, output_attentions=True)
    lists = dict(hidden_states=out.decoder_hidden_states, attentions=out.decoder_attentions,
                 encoder_hidden_states=out.encoder_hidden_states, encoder_attentions=out.encoder_attentions,
                 cross_attentions=out.cross_attentions)
    found = {key: torch.stack([t[0].double() for t in value]).numpy() for key, value in lists.items()}
    return found | {"logits": out.logits[0].double().numpy()}


def generated(model, records, options):
    texts = []
    for record in records:
        # The cache of transformers has as many layers as the encoder.
        out = model.generate(torch.tensor([record["source_ids"]]), use_cache=False, **options)
        for ids in out.tolist():
            ends = [at for at, token in enumerate(ids) if at > 0 and token == model.config.eos_token_id]
            texts.append(ids[1:ends[0] + 1] if ends else ids[1:])
    return texts


def languages(kind, tokenizer_class, codes, **settings):
    folder = LANGUAGES / kind
    shutil.rmtree(folder, ignore_errors=True)
    named = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
    pieces = [(piece, -2.0 - i / 8) for i, piece in enumerate(PIECES)]
    tokenizer_class(vocab=[*named, *pieces, *((code, 0.0) for code in codes), ("<mask>", 0.0)],
                    **settings).save_pretrained(folder)
    tokenizer = tr.AutoTokenizer.from_pretrained(folder)
    model = tr.MBartForConditionalGeneration.from_pretrained(OUT / "mbart", dtype=torch.float64).eval()
    lines = []
    for source, target in TEXTS:
        line = dict(source=source, target=target, source_ids=tokenizer(source).input_ids,
                    target_ids=tokenizer(text_target=target).input_ids)
        if max(line["source_ids"] + line["target_ids"]) < model.config.vocab_size:
            with torch.no_grad(), runs.doubled(True):
                loss = model(input_ids=torch.tensor([line["source_ids"]]),
                             labels=torch.tensor([line["target_ids"]])).loss.item()
            line["score"] = -loss * len(line["target_ids"])
        lines.append(line)
    (folder / "expected.jsonl").write_text("".join(json.dumps(l, ensure_ascii=False) + "\n" for l in lines))


def make(name):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    single, double = build(folder, name)
    size = double.config.vocab_size
    sources = runs.make_records(name + " source", [s for s, _ in LENGTHS], size)
    targets = runs.make_records(name + " target", [t for _, t in LENGTHS], size)
    records = [dict(source_ids=s["ids"], ids=t["ids"]) for s, t in zip(sources, targets, strict=True)]
    expected = [outputs_of(double, r, True) for r in records]
    rounding = max(runs.differences([outputs_of(single, r, False) for r in records], expected).values())
    assert rounding < 1e-3, (name, rounding)
    runs.write_records(folder / "records.jsonl", records)
    safetensors.numpy.save_file({f"{i}.{key}": np.ascontiguousarray(value, np.float32)
                                 for i, line in enumerate(expected) for key, value in line.items()},
                                folder / "expected.safetensors")
    if name == "t5":
        write_tokenizer(folder, size, double.config.eos_token_id)
    lines = [dict(options=options, texts=generated(double, records, options)) for options in GENERATE]
    (folder / "generated.jsonl").write_text("".join(json.dumps(l, separators=(",", ":")) + "\n" for l in lines))
    print(f"{name}: f32 {rounding:.1e}, {sum(f.stat().st_size for f in folder.iterdir())} bytes", flush=True)


def main():
    wanted = tuple(sys.argv[1:]) or ("",)
    for name in CASES:
        if name.startswith(wanted):
            make(name)
    mbart, mbart50 = tr.models.mbart.tokenization_mbart, tr.models.mbart50.tokenization_mbart50
    if "languages".startswith(wanted):
        languages("mbart", tr.MBartTokenizer, mbart.FAIRSEQ_LANGUAGE_CODES, src_lang="de_DE", tgt_lang="ro_RO")
        languages("mbart_same", tr.MBartTokenizer, mbart.FAIRSEQ_LANGUAGE_CODES, src_lang="de_DE")
        languages("mbart50", tr.MBart50Tokenizer, mbart50.FAIRSEQ_LANGUAGE_CODES, src_lang="hi_IN", tgt_lang="fr_XX")


if __name__ == "__main__":
    main()
