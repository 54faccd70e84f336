#!/usr/bin/env python3
"""Writes tests/data/evaluate/sentence_folders.tsv: settings of sentence-transformers folders, one changed in each case, and the vectors
of sentence-transformers' encode(). Columns: the case, a file in it, a line of that file.

  base     the files that a case does not change; the model is tests/data/model/bert_headless
  CASE     the files that it changes, and what is expected:
           vectors   a line of numbers for each text; or "same": those of the case as_it_is
           similar   a line for each pair of texts, by the folder's similarity function
           refused   empty: masque refuses the case, because sentence-transformers fails, or computes what masque does not

tests/cli/sentence_folder.transcript compares. Run with HF_HUB_OFFLINE=1. Versions: torch 2.15.0, transformers 5.24.0,
sentence-transformers 6.2.0.
"""

import json
import logging
import pathlib
import shutil
import tempfile
import warnings

import sentence_transformers
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests" / "data" / "evaluate" / "sentence_folders.tsv"
MODEL = ROOT / "tests" / "data" / "model" / "bert_headless"
WORDS = ("[PAD] [UNK] [CLS] [SEP] [MASK] the a cat cats dog dogs sat sits sit on mat . un ##believ ##able The Dog query : "
         "passage").split()
TEXTS = ["the cat sat on the mat.", "The Dog sits", "a", "", "unbelievable dogs sat on the cat : the mat sits . . . .",
         "THE [MASK] CATS sit", "query : dogs"]

MODULES = "sentence_transformers.models."
TRANSFORMER = dict(idx=0, name="0", path="", type=MODULES + "Transformer")
POOLING = dict(idx=1, name="1", path="1_Pooling", type=MODULES + "Pooling")
NORMALIZE = dict(idx=2, name="2", path="2_Normalize", type=MODULES + "Normalize")
MEAN = dict(word_embedding_dimension=24, pooling_mode_cls_token=False, pooling_mode_mean_tokens=True)
CLS = dict(embedding_dimension=24, pooling_mode="cls")
SETTINGS = "sentence_bert_config.json"
FOLDER = "config_sentence_transformers.json"
TOKENIZER = "tokenizer_config.json"
POOL = "1_Pooling/config.json"
PROMPTS = dict(query="query : ", passage="passage: ", nothing="", none=None)


def modules(*items):
    return {"modules.json": list(items)}


def prompted(name, **more):
    return {FOLDER: dict(prompts=PROMPTS, default_prompt_name=name, **more)}


def tokenizer(**settings):
    return {TOKENIZER: dict(tokenizer_class="PreTrainedTokenizerFast", cls_token="[CLS]", sep_token="[SEP]",
                            pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]", **settings)}


DENSE = dict(idx=2, name="2", path="2_Dense", type=MODULES + "Dense")
TEXT = dict(method="forward", method_output_name="last_hidden_state")

CASES = {
    "as_it_is": {},
    # How long a text may be.
    "length_of_tokenizer": tokenizer(model_max_length=8),
    "length_of_tokenizer_by_its_old_name": tokenizer(max_len=8),
    "length_of_tokenizer_without_limit": tokenizer(model_max_length=10**30),
    "length_null": tokenizer(model_max_length=8) | {SETTINGS: dict(max_seq_length=None, do_lower_case=False)},
    "length_stated": tokenizer(model_max_length=9) | {SETTINGS: dict(max_seq_length=7)},
    "length_stated_and_greater": tokenizer(model_max_length=8) | {SETTINGS: dict(max_seq_length=10)},
    "length_of_processor": {SETTINGS: dict(max_seq_length=9, processor_kwargs=dict(model_max_length=6))},
    "length_of_tokenizer_args": {SETTINGS: dict(tokenizer_args=dict(model_max_length=6))},
    "length_of_processing": {SETTINGS: dict(max_seq_length=9, processing_kwargs=dict(text=dict(max_length=5)))},
    "length_in_other_file": {"sentence_roberta_config.json": dict(max_seq_length=6)},
    "length_in_first_file": {SETTINGS: dict(max_seq_length=7), "sentence_roberta_config.json": dict(max_seq_length=6)},
    "length_in_file_after_empty_one": {SETTINGS: {}, "sentence_xlnet_config.json": dict(max_seq_length=6)},
    "cut_on_the_left": tokenizer(model_max_length=8, truncation_side="left"),
    "not_truncated": {SETTINGS: dict(processing_kwargs=dict(text=dict(truncation=False)))},
    # What a text becomes.
    "lower_case": {SETTINGS: dict(do_lower_case=True)},
    "lower_case_after_upper_prompt": {SETTINGS: dict(do_lower_case=True)} | {
        FOLDER: dict(prompts=dict(x="The Dog: "), default_prompt_name="x")},
    "prompt": prompted("query"),
    "prompt_without_space": prompted("passage"),
    "prompt_empty": prompted("nothing"),
    "prompt_null": prompted("none"),
    "prompts_without_default": {FOLDER: dict(prompts=PROMPTS, default_prompt_name=None)},
    "prompt_document": {FOLDER: dict(prompts={}, default_prompt_name="document")},
    "prompt_unknown": prompted("other"),
    "prompt_not_pooled": prompted("query") | {POOL: MEAN | dict(include_prompt=False)},
    "prompt_not_pooled_cls": prompted("query") | {POOL: CLS | dict(include_prompt=False)},
    "prompt_not_pooled_without_prompt": {POOL: MEAN | dict(include_prompt=False)},
    "prompt_not_pooled_cut": prompted("query") | {POOL: MEAN | dict(include_prompt=False)} | tokenizer(model_max_length=4),
    "prompt_not_pooled_cut_on_the_left": prompted("query") | {POOL: MEAN | dict(include_prompt=False)} | tokenizer(
        model_max_length=7, truncation_side="left"),
    "prompt_pooled": prompted("query") | {POOL: MEAN | dict(include_prompt=True)},
    "chat_template": {SETTINGS: dict(modality_config=dict(text=TEXT, message=TEXT | dict(format="flat")),
                                     module_output_name="token_embeddings")} | tokenizer(chat_template="{{ messages[0].content }} ."),
    # Poolings.
    "cls": {POOL: CLS},
    "cls_by_switch": {POOL: dict(word_embedding_dimension=24, pooling_mode_cls_token=True)},
    "pooling_named_beside_switches": {POOL: dict(word_embedding_dimension=24, pooling_mode="cls", pooling_mode_mean_tokens=True)},
    "pooling_list": {POOL: dict(word_embedding_dimension=24, pooling_mode=["cls"])},
    "no_pooling_switched_on": {POOL: dict(word_embedding_dimension=24, pooling_mode_mean_tokens=False)},
    "max": {POOL: dict(word_embedding_dimension=24, pooling_mode_max_tokens=True)},
    "mean_and_cls": {POOL: dict(word_embedding_dimension=24, pooling_mode_cls_token=True, pooling_mode_mean_tokens=True)},
    "lasttoken": {POOL: dict(embedding_dimension=24, pooling_mode="lasttoken")},
    "weightedmean": {POOL: dict(embedding_dimension=24, pooling_mode="weightedmean")},
    "mean_sqrt_len_tokens": {POOL: dict(embedding_dimension=24, pooling_mode="mean_sqrt_len_tokens")},
    # What becomes of a vector.
    "normalize": modules(TRANSFORMER, POOLING, NORMALIZE),
    "normalize_of_nothing_yet": modules(TRANSFORMER, NORMALIZE | dict(idx=1), POOLING | dict(idx=2)),
    "normalize_tokens": modules(TRANSFORMER, NORMALIZE | dict(idx=1), POOLING | dict(idx=2)) | {
        "2_Normalize/config.json": dict(module_input_name="token_embeddings")},
    "normalize_elsewhere": modules(TRANSFORMER, POOLING, NORMALIZE) | {
        "2_Normalize/config.json": dict(module_output_name="other")},
    "truncate_dim": {FOLDER: dict(truncate_dim=5)},
    "truncate_dim_after_normalize": {FOLDER: dict(truncate_dim=5)} | modules(TRANSFORMER, POOLING, NORMALIZE),
    "truncate_dim_beyond": {FOLDER: dict(truncate_dim=100)},
    # Modules.
    "dropout": modules(TRANSFORMER, POOLING, dict(idx=2, name="2", path="2_Dropout", type=MODULES + "Dropout")) | {
        "2_Dropout/config.json": dict(dropout=0.5)},
    "new_class_names": modules(
        TRANSFORMER | dict(type="sentence_transformers.base.modules.transformer.Transformer"),
        POOLING | dict(type="sentence_transformers.sentence_transformer.modules.pooling.Pooling"),
        NORMALIZE | dict(type="sentence_transformers.base.modules.normalize.Normalize")),
    "arguments_of_modules": modules(TRANSFORMER | dict(kwargs=["task"]), POOLING),
    "dense": modules(TRANSFORMER, POOLING, DENSE),
    "layer_norm": modules(TRANSFORMER, POOLING, DENSE | dict(type=MODULES + "LayerNorm")),
    "other_class": modules(TRANSFORMER | dict(type="custom_st.Transformer"), POOLING),
    "no_pooling": modules(TRANSFORMER),
    "same_name": modules(TRANSFORMER, POOLING | dict(name="0")),
    "outside": modules(TRANSFORMER, POOLING | dict(path="../1_Pooling")),
    # Settings of the classes.
    "task": {SETTINGS: dict(transformer_task="fill-mask")},
    "usual_task": {SETTINGS: dict(transformer_task="feature-extraction", modality_config=dict(text=TEXT),
                                  module_output_name="token_embeddings", unpad_inputs=False)},
    "other_output": {SETTINGS: dict(modality_config=dict(text=dict(method="forward", method_output_name="pooler_output")),
                                    module_output_name="sentence_embedding")},
    "lengths_of_queries": {SETTINGS: dict(query_length=4, document_length=5)},
    "usual_arguments": {SETTINGS: dict(model_args=dict(attn_implementation="eager"), config_args={},
                                       tokenizer_args=dict(use_fast=True))},
    "other_activation": {SETTINGS: dict(config_args=dict(hidden_act="relu"))},
    "other_tokens": {SETTINGS: dict(processing_kwargs=dict(text=dict(add_special_tokens=False)))},
    "other_tokenizer": {SETTINGS: dict(processor_kwargs=dict(truncation_side="left"))},
    "common_length": {SETTINGS: dict(processing_kwargs=dict(common=dict(max_length=5)))},
    # Settings of the folder.
    "versions": {FOLDER: {"__version__": dict(sentence_transformers="5.0.0", pytorch="2.0"), "model_type": "SentenceTransformer",
                          "prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"}},
    "unknown_setting": {FOLDER: dict(something_new=1)},
    "cross_encoder": {FOLDER: dict(model_type="CrossEncoder")},
    "similarity_dot": {FOLDER: dict(similarity_fn_name="dot")},
    "similarity_euclidean": {FOLDER: dict(similarity_fn_name="euclidean")},
    "similarity_manhattan": {FOLDER: dict(similarity_fn_name="manhattan", truncate_dim=7)},
    "similarity_null": {FOLDER: dict(similarity_fn_name=None)},
    "similarity_maxsim": {FOLDER: dict(similarity_fn_name="maxsim")},
}

# sentence-transformers computes these, masque refuses them by name.
REFUSED = {"not_truncated", "chat_template", "max", "mean_and_cls", "lasttoken", "weightedmean", "mean_sqrt_len_tokens", "normalize_tokens", "dense",
           "layer_norm", "task", "other_output", "other_activation", "other_tokens", "other_tokenizer", "common_length",
           "cross_encoder", "similarity_maxsim", "same_name", "normalize_elsewhere"}


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def texts_of(files):
    return {name: json.dumps(content, ensure_ascii=False) + "\n" for name, content in files.items()}


def base_files():
    tok = Tokenizer(models.WordPiece({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer(lowercase=False)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                       special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tok.add_special_tokens(WORDS[:5])
    return texts_of({"tokenizer.json": json.loads(tok.to_str())} | tokenizer() | modules(TRANSFORMER, POOLING) | {POOL: MEAN})


def peer(name, files):
    """The vectors, or the similarities, of a case; None if sentence-transformers fails."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        shutil.copytree(MODEL, folder, dirs_exist_ok=True)
        write(folder, files)
        try:
            model = sentence_transformers.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
            vectors = torch.stack([torch.as_tensor(model.encode([text], show_progress_bar=False)[0]) for text in TEXTS])
        except Exception as error:  # noqa: BLE001
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
            return None
        if not name.startswith("similarity"):
            return vectors
        some = vectors[[i for i, text in enumerate(TEXTS) if text]]
        return model.similarity_pairwise(some[:-1], some[1:])[:, None]


def expected(name, result, usual):
    if result is None or name in REFUSED:
        return {"refused": "\n"}
    if name != "as_it_is" and result.shape == usual.shape and torch.equal(result, usual):
        print(name, "changes nothing")
        return {"vectors": "same\n"}
    rows = "".join(" ".join(f"{x:.5g}" for x in row) + "\n" for row in result.tolist())
    return {"similar" if name.startswith("similarity") else "vectors": rows}


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    base = base_files()
    out = {"base": base | {"texts": "".join(text + "\n" for text in TEXTS)}}
    usual = peer("as_it_is", base)
    # Of a truncation in tokenizer.json only the side counts.
    cut = dict(direction="Left", max_length=4, strategy="LongestFirst", stride=0)
    CASES["cut_on_the_left_by_tokenizer_json"] = tokenizer(model_max_length=8) | {
        "tokenizer.json": json.loads(base["tokenizer.json"]) | dict(truncation=cut)}
    for name, changed in CASES.items():
        files = texts_of(changed)
        out[name] = files | expected(name, peer(name, base | files), usual)
    with open(OUT, "w", encoding="utf-8") as file:
        for case, files in out.items():
            for path, content in files.items():
                for line in content.splitlines():
                    file.write(f"{case}\t{path}\t{line}\n")


if __name__ == "__main__":
    main()
