#!/usr/bin/env python3
"""Writes tests/data/evaluate/compare.json: what sacreBLEU and rouge_score say of generated lines.

The lines have words, punctuation, numbers, entities, characters of several scripts, odd white space and
nothing at all; a system's line is a reference with words dropped, exchanged, replaced or repeated. Values
of corpora and of single lines; p-values of sacreBLEU's two paired tests, whose draws are its own: the test
allows for that. Token accuracy, word errors and edit distance are computed here by their definitions.
Written with sacrebleu 2.6.0, rouge_score 0.1.2, Python 3.11.7.

  compare_texts.py                    writes the file
  compare_texts.py speed HYP REF      how long sacreBLEU and rouge_score take over two files
"""

import json
import pathlib
import random
import sys
import time

from rouge_score import rouge_scorer
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "evaluate" / "compare.json"
TOKENIZERS = ["13a", "intl", "char", "none"]
SEED = 20

WORDS = """the a cat sat on mat dog 's don't U.S. 3.14 1,000 2,5 10-20 e.g. 5-year well-known (see [12] {x} $5 50%
 50- 7. ,8 ... -- "quoted" 'so' it; why? yes! a/b x=y a&b &amp; &lt;b&gt; &quot;q&quot; &amp;lt; <skipped> <s>
 naïve Straße ÉTÉ Ελλάδα слово Москва 中文字 日本語、 「東京」 ٣٤ ½ x² € £5 «bon» 5–7 “q” … word。 ¿qué? ©2024 😀 👍🏽 İstanbul
 K2 ﬁne e\u0301 \u00ad- Ⅷ ①""".split()
SPACES = [" "] * 30 + ["  ", "\t", "\u00a0", "\u3000", "\x1d", "\x85", "\u2028", " \r"]


def sentence(rng):
    if rng.random() < 0.04:
        return ""
    words = [rng.choice(WORDS) for _ in range(rng.choice([1, 2, 3, 5, 8, 12, 20, 80 if rng.random() < 0.2 else 9]))]
    text = words[0]
    for word in words[1:]:
        text += (rng.choice(SPACES) if rng.random() < 0.93 else "") + word
    return text + rng.choice(["", "", ".", " .", " ", "\u2003", "7.", "?"])


def noisy(rng, text, rate):
    words = text.split(" ")
    out = []
    for word in words:
        r = rng.random()
        if r < rate / 4:
            continue
        if r < rate / 2:
            word = rng.choice(WORDS)
        elif r < rate * 0.7 and len(word) > 1:
            i = rng.randrange(len(word) - 1)
            word = word[:i] + word[i + 1] + word[i] + word[i + 2 :]
        elif r < rate * 0.8:
            out.append(word)
        elif r < rate and out:
            out[-1], word = word, out[-1]
        out.append(word)
    return " ".join(out)


def words_of(text):
    return [w for w in text.replace("\t", " ").replace("\r", " ").replace("\n", " ").split(" ") if w]


def distance(a, b, exchanges):
    d = [[i + j if i == 0 or j == 0 else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
            if exchanges and i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1)
    return d[-1][-1]


def accuracy(hypothesis, references):
    """(right, all) of the reference with the largest share, of equal ones the first; (0, 0) of empty texts is best."""
    h, best = words_of(hypothesis), None
    for reference in references:
        r = words_of(reference)
        pair = (sum(x == y for x, y in zip(h, r)), max(len(h), len(r)))
        share = pair[0] / pair[1] if pair[1] else 2
        if best is None or share > best[0]:
            best = (share, pair)
    return best[1]


def word_errors(hypothesis, references):
    pairs = [(distance(words_of(r), words_of(hypothesis), False), len(words_of(r))) for r in references]
    return min(pairs, key=lambda pair: pair[0])


def system(hypotheses, references):
    """`references`: one list of lines for each. Values of the corpus and of each line."""
    rows = list(zip(*references))
    corpus, lines = {}, {}
    for name in TOKENIZERS:
        corpus[f"bleu-{name}"] = BLEU(tokenize=name, force=True).corpus_score(hypotheses, references).score
        one = BLEU(tokenize=name, effective_order=True, force=True)
        lines[f"bleu-{name}"] = [one.sentence_score(h, r).score for h, r in zip(hypotheses, rows)]
    corpus["chrf"] = CHRF().corpus_score(hypotheses, references).score
    lines["chrf"] = [CHRF().sentence_score(h, r).score for h, r in zip(hypotheses, rows)]
    scorer = rouge_scorer.RougeScorer(["rougeL"], use_stemmer=False)
    lines["rouge_l"] = [scorer.score_multi(r, h)["rougeL"].fmeasure for h, r in zip(hypotheses, rows)]
    corpus["rouge_l"] = sum(lines["rouge_l"]) / len(hypotheses)
    corpus["exact_match"] = sum(h in r for h, r in zip(hypotheses, rows)) / len(hypotheses)
    pairs = [accuracy(h, r) for h, r in zip(hypotheses, rows)]
    corpus["token_accuracy"] = sum(p[0] for p in pairs) / sum(p[1] for p in pairs)
    pairs = [word_errors(h, r) for h, r in zip(hypotheses, rows)]
    corpus["wer"] = sum(p[0] for p in pairs) / sum(p[1] for p in pairs)
    edits = [min(distance(r, h, True) for r in rs) for h, rs in zip(hypotheses, rows)]
    corpus["edit_distance"] = sum(edits) / len(edits)
    return {"corpus": corpus, "lines": lines}


def p_values(first, second, references):
    out = {}
    for kind in ("bs", "ar"):
        metrics = {"BLEU": BLEU(references=references, force=True), "chrF2": CHRF(references=references)}
        # The second system is the base line: the test is symmetric but for the draws.
        test = PairedTest([("second", second), ("first", first)], metrics, None, test_type=kind, n_samples=4000)
        _, scores = test()
        out[kind] = {"bleu": scores["BLEU"][1].p_value, "chrf": scores["chrF2"][1].p_value}
    return out


def make():
    rng = random.Random(SEED)
    references = [[sentence(rng) for _ in range(160)]]
    references.append([noisy(rng, r, 0.3) for r in references[0]])
    references.append([sentence(rng) if rng.random() < 0.2 else noisy(rng, r, 0.5) for r in references[0]])
    first = [sentence(rng) if rng.random() < 0.06 else noisy(rng, r, 0.35) for r in references[0]]
    second = [sentence(rng) if rng.random() < 0.06 else noisy(rng, r, 0.38) for r in references[0]]
    data = {"references": references, "first": first, "second": second}
    data["first-of-1"] = system(first, references[:1])
    data["first-of-3"] = system(first, references)
    data["second-of-3"] = system(second, references)
    data["p"] = p_values(first, second, references[:1])
    OUT.write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")
    print(OUT, OUT.stat().st_size, data["first-of-3"]["corpus"], data["p"])


def speed(hypothesis, reference):
    h, r = (pathlib.Path(p).read_text().split("\n")[:-1] for p in (hypothesis, reference))
    for name, metric in (("bleu", BLEU(force=True)), ("chrf", CHRF())):
        start = time.perf_counter()
        score = metric.corpus_score(h, [r]).score
        print(f"{name} {score!r} {time.perf_counter() - start:.2f} s")
    scorer = rouge_scorer.RougeScorer(["rougeL"], use_stemmer=False)
    start = time.perf_counter()
    score = sum(scorer.score(b, a)["rougeL"].fmeasure for a, b in zip(h, r)) / len(h)
    print(f"rouge_l {score!r} {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    speed(*sys.argv[2:]) if sys.argv[1:2] == ["speed"] else make()
