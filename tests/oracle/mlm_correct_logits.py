"""Compares language-model logits in transformers before and after `embed-fix mlm-correct`, for every family.

    mlm_correct_logits.py BIN_DIR DATA_DIR

For each config of DATA_DIR/family a random checkpoint is made, corrected (untied), and loaded. It must load without missing or
unexpected tensors, the head must be what it was, and its logits must be those of the original model fed with the corrected
embeddings. Exit 77 (skipped) without torch and transformers.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "goldens"))
try:
    import torch
    import transformers

    import diffusion_classes
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

# Sizes of the golden configs with which the model itself cannot run: rotary needs an even head size.
RUNNABLE = {"roformer": {"hidden_size": 24, "num_attention_heads": 3}}


def load(model_class, folder):
    model, info = model_class.from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
    # New checkpoints have no head of contacts (ESM).
    missing = [key for key in info["missing_keys"] if "contact_head" not in key and "inv_freq" not in key]
    assert not missing and not info["unexpected_keys"], info
    return model.eval()


def check(config, work, bin_dir):
    """The largest difference of the logits, and how far the correction moved them."""
    run = lambda *command: subprocess.run([os.path.join(bin_dir, command[0]), *command[1:]], check=True, capture_output=True)
    with open(config, encoding="utf-8") as file:
        values = json.load(file)
    values.update(RUNNABLE.get(values["model_type"], {}))
    config = os.path.join(work, "config.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump(values, file)
    name = values["architectures"][0]
    model_class = getattr(transformers, name, None) or getattr(diffusion_classes, name)
    before, after = os.path.join(work, "before"), os.path.join(work, "after")
    run("ckpt", "new", config, "-o", before, "--seed", "3")
    run("embed-fix", "mlm-correct", before, "-o", after, "--mask-token", "4", "--rate", "0.5", "--verify")
    with open(os.path.join(after, "config.json"), encoding="utf-8") as file:
        assert json.load(file)[getattr(model_class, "TIE", "tie_word_embeddings")] is False
    a, b = load(model_class, before), load(model_class, after)
    assert torch.equal(a.get_output_embeddings().weight, b.get_output_embeddings().weight), "the head changed"
    assert torch.equal(a.get_output_embeddings().weight, a.get_input_embeddings().weight), "was not tied"
    ids = torch.arange(5, 13)[None]
    with torch.no_grad():
        expected = a(inputs_embeds=b.get_input_embeddings()(ids)).logits
        found = b(input_ids=ids).logits
        plain = a(input_ids=ids).logits
    return (expected - found).abs().max().item(), (plain - found).abs().max().item()


def main():
    bin_dir, data_dir = sys.argv[1:]
    configs = sorted(glob.glob(os.path.join(data_dir, "family", "*.config.json")))
    assert configs
    bad = 0
    for config in configs:
        name = os.path.basename(config).split(".")[0]
        with open(config, encoding="utf-8") as file:
            architecture = json.load(file)["architectures"][0]
        # T5's encoder has no vocabulary for its outputs there; ESM treats embeddings that are given otherwise than tokens.
        known = hasattr(transformers, architecture) or hasattr(diffusion_classes, architecture)
        if not known or architecture.endswith("EncoderModel") or architecture.startswith("Esm"):
            print(f"{name}\tleft out")
            continue
        with tempfile.TemporaryDirectory() as work:
            difference, moved = check(config, work, bin_dir)
        good = difference <= 1e-6 < moved
        bad += not good
        print(f"{name}\tdifference {difference:.2g}\tmoved {moved:.2g}\t{'ok' if good else 'BAD'}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
