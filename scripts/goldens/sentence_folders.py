#!/usr/bin/env python3
"""Writes tests/data/evaluate/sentence_folders.tsv: settings of sentence-transformers folders, one changed in each case, and the vectors
of sentence-transformers' encode(). Columns: the case, a file in it, a line of that file.

  base     the files that a case does not change; the model is tests/data/model/bert_headless
  CASE     the files that it changes, and what is expected:
           vectors   a line of numbers for each text; or "same": those of the case as_it_is
           similar   a line for each pair of texts, by the folder's similarity function
           refused   empty: masque refuses the case, because sentence-transformers fails, or computes what masque does not
           FOLDER/weights   the file of sentence_modules/ that is the weights of the module FOLDER

and tests/data/evaluate/sentence_modules, random weights of modules.

tests/cli/sentence_folder.transcript compares. Run with HF_HUB_OFFLINE=1. Versions: torch 2.15.0, transformers 5.24.0,
sentence-transformers 6.2.0.
"""

import json
import logging
import pathlib
import shutil
import tempfile
import warnings

import safetensors.torch
import sentence_transformers
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests" / "data" / "evaluate" / "sentence_folders.tsv"
WEIGHTS = ROOT / "tests" / "data" / "evaluate" / "sentence_modules"
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
NORM = dict(idx=2, name="2", path="2_LayerNorm", type=MODULES + "LayerNorm")
WIDTH = 24
# The tensors of each file of weights, with their shapes.
TENSORS = {
    "dense.safetensors": {"linear.weight": (16, WIDTH), "linear.bias": (16,)},
    "dense.bin": {"linear.weight": (16, WIDTH), "linear.bias": (16,)},
    "square.safetensors": {"linear.weight": (WIDTH, WIDTH)},
    "wide.safetensors": {"linear.weight": (8, 2 * WIDTH), "linear.bias": (8,)},
    "residual.safetensors": {"linear.weight": (16, WIDTH), "linear.bias": (16,), "residual.weight": (16, WIDTH)},
    "norm.safetensors": {"norm.weight": (WIDTH,), "norm.bias": (WIDTH,)},
}


def dense(weights="dense.safetensors", **settings):
    """The files of a Dense: as sentence-transformers writes them, but for `settings`."""
    config = dict(in_features=WIDTH, out_features=16, bias=True, activation_function="torch.nn.modules.activation.Tanh") | settings
    return {"2_Dense/config.json": {k: v for k, v in config.items() if v != "absent"}, "2_Dense/weights": weights}


def pooled(*modes, **more):
    return {POOL: dict(embedding_dimension=WIDTH, pooling_mode=list(modes) if len(modes) > 1 else modes[0], **more)}


WITH_DENSE = modules(TRANSFORMER, POOLING, DENSE)
SQUARE = dict(weights="square.safetensors", out_features=WIDTH, bias=False)
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
    "lasttoken": pooled("lasttoken"),
    "weightedmean": pooled("weightedmean"),
    "mean_sqrt_len_tokens": pooled("mean_sqrt_len_tokens"),
    "all_poolings": pooled("weightedmean", "max", "lasttoken", "cls", "mean", "mean_sqrt_len_tokens"),
    "all_switches": {POOL: dict(word_embedding_dimension=24, pooling_mode_cls_token=True, pooling_mode_max_tokens=True,
                                pooling_mode_mean_tokens=True, pooling_mode_mean_sqrt_len_tokens=True,
                                pooling_mode_weightedmean_tokens=True, pooling_mode_lasttoken=True)},
    "same_pooling_twice": pooled("mean", "mean"),
    "pooling_unknown": pooled("median"),
    "no_pooling_in_list": {POOL: dict(embedding_dimension=WIDTH, pooling_mode=[])},
    "prompt_not_pooled_max": prompted("query") | pooled("max", include_prompt=False),
    "prompt_not_pooled_lasttoken": prompted("query") | pooled("lasttoken", include_prompt=False),
    "prompt_not_pooled_weightedmean": prompted("query") | pooled("weightedmean", include_prompt=False),
    "prompt_not_pooled_mean_sqrt_len_tokens": prompted("query") | pooled("mean_sqrt_len_tokens", include_prompt=False),
    "prompt_not_pooled_cut_lasttoken": prompted("query") | pooled("lasttoken", include_prompt=False) | tokenizer(model_max_length=4),
    "poolings_truncated_and_normalized": pooled("mean", "max") | modules(TRANSFORMER, POOLING, NORMALIZE) | {FOLDER: dict(truncate_dim=30)},
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
    "dense": WITH_DENSE | dense(),
    "dense_without_files": WITH_DENSE,
    "dense_in_torch_file": WITH_DENSE | dense("dense.bin"),
    "dense_identity": WITH_DENSE | dense(activation_function="torch.nn.modules.linear.Identity"),
    "dense_relu": WITH_DENSE | dense(activation_function="torch.nn.modules.activation.ReLU"),
    "dense_gelu": WITH_DENSE | dense(activation_function="torch.nn.modules.activation.GELU"),
    "dense_silu": WITH_DENSE | dense(activation_function="torch.nn.SiLU"),
    "dense_sigmoid": WITH_DENSE | dense(activation_function="torch.nn.Sigmoid"),
    "dense_other_activation": WITH_DENSE | dense(activation_function="torch.nn.Hardtanh"),
    "dense_own_activation": WITH_DENSE | dense(activation_function="mine.Act"),
    "dense_usual_activation": WITH_DENSE | dense(activation_function="absent"),
    "dense_without_bias": WITH_DENSE | dense(**SQUARE),
    "dense_bias_missing": WITH_DENSE | dense(**SQUARE | dict(bias=True)),
    "dense_bias_unused": WITH_DENSE | dense(bias=False),
    "dense_residual": WITH_DENSE | dense("residual.safetensors", use_residual=True),
    "dense_residual_unused": WITH_DENSE | dense("residual.safetensors"),
    "dense_residual_of_one_size": WITH_DENSE | dense(**SQUARE, use_residual=True),
    "dense_other_size": WITH_DENSE | dense(out_features=8),
    "dense_after_two_poolings": WITH_DENSE | dense("wide.safetensors", in_features=2 * WIDTH, out_features=8) | pooled("mean", "max"),
    "dense_after_one_pooling_of_two": WITH_DENSE | dense() | pooled("mean", "max"),
    "dense_of_tokens": WITH_DENSE | dense(module_input_name="token_embeddings"),
    "dense_elsewhere": WITH_DENSE | dense(module_output_name="other"),
    "dense_unknown_setting": WITH_DENSE | dense(something_new=1),
    "dense_before_pooling": modules(TRANSFORMER, DENSE | dict(idx=1), POOLING | dict(idx=2)) | dense(),
    "dense_normalized": modules(TRANSFORMER, POOLING, DENSE, NORMALIZE | dict(idx=3, name="3")) | dense(),
    "dense_of_normalized": modules(TRANSFORMER, POOLING, NORMALIZE, DENSE | dict(idx=3, name="3")) | dense(),
    "dense_truncated": WITH_DENSE | dense() | {FOLDER: dict(truncate_dim=5)},
    "two_denses": modules(TRANSFORMER, POOLING, DENSE | dict(idx=2), DENSE | dict(idx=3, name="3", path="3_Dense")) | dense(**SQUARE) | {
        name.replace("2_", "3_"): content for name, content in dense().items()},
    "new_dense_name": modules(TRANSFORMER, POOLING, DENSE | dict(type="sentence_transformers.base.modules.dense.Dense")) | dense(),
    "layer_norm": modules(TRANSFORMER, POOLING, NORM) | {"2_LayerNorm/config.json": dict(dimension=WIDTH),
                                                         "2_LayerNorm/weights": "norm.safetensors"},
    "layer_norm_of_other_size": modules(TRANSFORMER, POOLING, NORM) | {"2_LayerNorm/config.json": dict(dimension=12),
                                                                       "2_LayerNorm/weights": "norm.safetensors"},
    "layer_norm_without_files": modules(TRANSFORMER, POOLING, NORM),
    "weighted_layers": modules(TRANSFORMER, NORM | dict(idx=1, type=MODULES + "WeightedLayerPooling"), POOLING | dict(idx=2)),
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
REFUSED = {"not_truncated", "chat_template", "normalize_tokens", "dense_other_activation", "dense_own_activation", "dense_of_tokens",
           "dense_elsewhere", "task", "other_output", "other_activation", "other_tokens", "other_tokenizer", "common_length",
           "cross_encoder", "similarity_maxsim", "same_name", "normalize_elsewhere"}


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.name == "weights":
            weights = content.strip()
            shutil.copy(WEIGHTS / weights, path.with_name("pytorch_model.bin" if weights.endswith(".bin") else "model.safetensors"))
            continue
        path.write_text(content)


def texts_of(files):
    return {name: (content if name.endswith("/weights") else json.dumps(content, ensure_ascii=False)) + "\n"
            for name, content in files.items()}


def write_weights():
    torch.manual_seed(3)
    WEIGHTS.mkdir(exist_ok=True)
    for name, shapes in TENSORS.items():
        tensors = {tensor: torch.randn(shape) * 0.3 for tensor, shape in shapes.items()}
        if name.endswith(".bin"):
            torch.save(tensors, WEIGHTS / name)
        else:
            safetensors.torch.save_file(tensors, WEIGHTS / name)


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
    write_weights()
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
