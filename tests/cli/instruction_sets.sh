#!/usr/bin/env bash
# AVX2 and AVX-512 train the same bytes, and MASQUE_CPU is read: a set that is none is refused.
#   instruction_sets.sh FOLDER_OF_TOOLS
set -euo pipefail
export PATH=$1:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
code=0
MASQUE_CPU=mmx ckpt --version >out 2>err || code=$?
[ "$code" -eq 2 ] || { echo "MASQUE_CPU=mmx: exit $code, expected 2"; exit 1; }
grep -q "MASQUE_CPU: 'mmx', expected one of" err || { cat err; exit 1; }
MASQUE_CPU=avx512 ckpt --version >/dev/null 2>&1 || { echo "skipped: this processor has no AVX-512"; exit 77; }
for i in $(seq 200); do echo "the cat number $i sat on the mat of dog $((i * 7 % 31)) and ran away"; done >text
tok train -o vocabulary --size 300 -q <text
for objective in mlm clm; do
  for set in avx2 avx512; do
    MASQUE_CPU=$set lm-train text -o "$objective-$set" --tokenizer vocabulary --objective $objective --steps 8 \
      --num-hidden-layers 2 --hidden-size 64 --num-attention-heads 2 --length 64 --seed 1 -q >/dev/null
  done
  cmp "$objective-avx2/model.safetensors" "$objective-avx512/model.safetensors"
done
