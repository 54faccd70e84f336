"""Golden files of `embed-fix mlm-correct`: small BERTs saved by transformers, and what numpy makes of them.

Writes tests/data/mlm_correct/{tied,untied}/ (config.json, model.safetensors, vocab.txt) and, for F32, F16 and BF16 tables,
expected.safetensors: the corrected table in double precision, rounded once. Made with transformers 5.23.0, torch 2.15.0,
numpy 2.4.6, safetensors 0.8.0 on 2026-11-21:

    python scripts/goldens/mlm_correct.py
"""
import os

import numpy
import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertForMaskedLM

ROOT = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "data", "mlm_correct")
ROWS, WIDTH, MASK, KEPT = 61, 24, 4, [0, 2, 3, 4]
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]"] + [f"t{i}" for i in range(7, 59)]


def corrected(table, rate, mask, keep, rand, weights, kept):
    """The formula, in double precision."""
    table = table.to(torch.float64).numpy()
    mean = weights @ table / weights.sum()
    out = (1 - rate + rate * keep) * table + rate * mask * table[MASK] + rate * rand * mean
    out[kept] = table[kept]
    return torch.from_numpy(out)


def main():
    expected = {}
    for tied in (True, False):
        torch.manual_seed(7)
        config = BertConfig(vocab_size=ROWS, hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=2, intermediate_size=20,
                            max_position_embeddings=16, tie_word_embeddings=tied)
        model = BertForMaskedLM(config)
        torch.nn.init.normal_(model.cls.predictions.bias)
        folder = os.path.join(ROOT, "tied" if tied else "untied")
        model.save_pretrained(folder)
        with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(TOKENS) + "\n")
        if not tied:
            continue
        table = model.get_input_embeddings().weight.detach()
        every = numpy.ones(ROWS)
        used = numpy.array([float(i < len(TOKENS) and not TOKENS[i].startswith("[unused")) for i in range(ROWS)])
        counts = numpy.array([float(i % 5) for i in range(ROWS)])
        expected["vocab"] = corrected(table, .15, .8, .1, .1, every, KEPT).to(torch.float32)
        expected["used"] = corrected(table, .15, .8, .1, .1, used, KEPT).to(torch.float32)
        expected["freq"] = corrected(table, .3, .5, .2, .3, counts, KEPT).to(torch.float32)
        expected["special-correct"] = corrected(table, .15, .8, .1, .1, every, []).to(torch.float32)
        for dtype, name in ((torch.float16, "f16"), (torch.bfloat16, "bf16")):
            small = table.to(dtype)
            # numpy rounds double to half once; bfloat16 goes through the nearest float only where that is exact enough:
            # torch rounds double to bfloat16 through float, so it is done here by hand.
            exact = corrected(small, .15, .8, .1, .1, every, KEPT)
            expected[name + "-in"] = small
            expected[name] = torch.from_numpy(exact.numpy().astype(numpy.float16)) if name == "f16" else round_bfloat16(exact)
    expected = {key: value.contiguous() for key, value in expected.items()}
    save_file(expected, os.path.join(ROOT, "expected.safetensors"))


def round_bfloat16(values):
    """Double to bfloat16, to nearest, ties to even, by looking at both neighbours."""
    values = values.numpy()
    down = torch.from_numpy(values).to(torch.float32).view(torch.int32).bitwise_and(-65536).view(torch.float32)
    low = down.to(torch.float64).numpy()
    step = numpy.spacing(numpy.abs(down.numpy())).astype(numpy.float64) * 65536 * numpy.sign(values)
    high = low + step
    nearer_high = numpy.abs(high - values) < numpy.abs(values - low)
    tie = numpy.abs(high - values) == numpy.abs(values - low)
    odd = (down.view(torch.int32).numpy() >> 16) & 1
    return torch.from_numpy(numpy.where(nearer_high | (tie & (odd == 1)), high, low)).to(torch.bfloat16)


if __name__ == "__main__":
    main()
