#!/usr/bin/env python3
"""Compares `tok encode` with Hugging Face's tokenizers, line by line.

    tokenizer_compare.py TOK FOLDER… -- TEXT… [--lines N]

TOK is the program. For every tokenizer folder and text file it prints how many lines differ in ids
and in offsets, with and without the template's special tokens, and the first line that does. Folders
without tokenizer.json are read as transformers converts them (spiece.model: with the converter of
XLNet), and spiece.model also by the rules of libsentencepiece (`--flavor spm`).

Ran with tokenizers 0.23.3, transformers 5.23.0, sentencepiece 0.2.3.
"""
import json
import pathlib
import subprocess
import sys
import types


def hugging_face(folder):
    from tokenizers import Tokenizer
    if (folder / "tokenizer.json").exists():
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    elif (folder / "spiece.model").exists():
        from transformers.convert_slow_tokenizer import XLNetConverter
        import sentencepiece
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
        slow = types.SimpleNamespace(vocab_file=str(folder / "spiece.model"), do_lower_case=False,
                                     keep_accents=False, convert_tokens_to_ids=pieces.piece_to_id)
        tokenizer = XLNetConverter(slow).converted()
    elif (folder / "vocab.json").exists():
        from transformers import GPT2TokenizerFast
        tokenizer = GPT2TokenizerFast.from_pretrained(str(folder))._tokenizer
    else:
        from transformers import BertTokenizerFast
        tokenizer = BertTokenizerFast.from_pretrained(str(folder))._tokenizer
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def ours(tok, folder, data, options):
    run = subprocess.run([tok, "encode", str(folder), "-q", *options], input=data, check=True,
                         stdout=subprocess.PIPE)
    return run.stdout.decode().split("\n")[:-1]


def report(name, text, kind, mine, theirs, lines):
    assert len(mine) == len(theirs), (len(mine), len(theirs))
    wrong = [i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b]
    print(f"{name}\t{text}\t{kind}\t{len(theirs)}\t{len(wrong)}", flush=True)
    for i in wrong[:1]:
        print(f"  line {i + 1}: {lines[i][:300]!r}\n    tok   {str(mine[i])[:300]}\n"
              f"    other {str(theirs[i])[:300]}", flush=True)
    return len(wrong)


def compare(tok, folder, path, limit):
    data = path.read_bytes().decode("utf-8", "replace")
    lines = data.split("\n")
    if lines[-1] == "":
        lines.pop()
    lines = lines[:limit]
    data = "".join(line + "\n" for line in lines).encode()
    tokenizer = hugging_face(folder)
    wrong = 0
    for special in (False, True):
        options = ["--special"] if special else []
        kind = "special" if special else "plain"
        ids, records = [], []
        for begin in range(0, len(lines), 2000):
            for e in tokenizer.encode_batch(lines[begin:begin + 2000], add_special_tokens=special):
                ids.append(" ".join(map(str, e.ids)))
                records.append((e.ids, [list(o) for o in e.offsets], e.tokens, e.type_ids))
        wrong += report(folder.name, path.name, f"ids {kind}",
                        ours(tok, folder, data, options), ids, lines)
        wrong += report(folder.name, path.name, f"ids {kind} -j 2",
                        ours(tok, folder, data, options + ["-j", "2"]), ids, lines)
        mine = []
        for line in ours(tok, folder, data,
                         options + ["--jsonl", "--with", "offsets,tokens,seg"]):
            record = json.loads(line)
            mine.append((record["ids"], record["offsets"], record["tokens"], record["seg"]))
        wrong += report(folder.name, path.name, f"offsets {kind}", mine, records, lines)
    if (folder / "spiece.model").exists():
        import sentencepiece
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
        theirs = [" ".join(map(str, ids)) for ids in pieces.encode(lines)]
        wrong += report(folder.name, path.name, "ids spm",
                        ours(tok, folder, data, ["--flavor", "spm"]), theirs, lines)
    return wrong


def main():
    arguments = sys.argv[1:]
    limit = None
    if "--lines" in arguments:
        at = arguments.index("--lines")
        limit = int(arguments[at + 1])
        del arguments[at:at + 2]
    split = arguments.index("--")
    tok, folders, texts = arguments[0], arguments[1:split], arguments[split + 1:]
    print("tokenizer\ttext\tkind\tlines\tdiffer")
    wrong = sum(compare(tok, pathlib.Path(f), pathlib.Path(t), limit) for f in folders
                for t in texts)
    print(f"total\t\t\t\t{wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
