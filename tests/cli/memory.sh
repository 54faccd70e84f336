#!/usr/bin/env bash
# What the tools hold in memory, pages of mapped files included, is at most twice the largest tensor
# plus 64 MB, whatever the size of the checkpoint.
# Training on a token folder of 20 GB holds no more than 100 MB.
# Of a long line `tok encode` holds at most 20 bytes for each of its bytes, besides 64 MB.
#   tests/cli/memory.sh BIN_DIR PEAK_MEMORY
# The checkpoint is a BERT of holes in 8 shards: 256 MiB in tensors of 8 MiB; with MASQUE_LARGE=1
# 4 GiB in tensors of 32 MiB, which takes minutes and 9 GB of disk.
# Exit codes: 0 all as it should be; 1 a failure; 77 skipped: memory cannot be measured here.
set -u
export LC_ALL=C

bin=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)
peak=${2:?PEAK_MEMORY, the program that measures}
# shellcheck source=tests/cli/sanitizer.sh
. "$(dirname "$0")/sanitizer.sh"
if sanitized "$bin/ckpt"; then
  echo "skipped: sanitizers hold memory of their own"
  exit 77
fi
mib=$((1 << 20))
tensor=$((8 * mib)) per_shard=4
[ "${MASQUE_LARGE-}" = 1 ] && tensor=$((32 * mib)) per_shard=16
shards=8
width=256
rows=$((tensor / 4 / width))
limit_kib=$(((2 * tensor + 64000000) / 1024))

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

byte() { printf '%b' "\\0$(printf %o $(($1 & 255)))"; }

# file PATH HEADER BYTES: a safetensors file whose data is a hole.
file() {
  local length=${#2} i
  for i in 0 8 16 24 32 40 48 56; do byte $((length >> i)); done >"$1"
  printf %s "$2" >>"$1"
  truncate -s $((8 + length + $3)) "$1"
}

# The table and the positions lie in the first shard.
make_checkpoint() {
  local shard name at header map= total=0 t
  mkdir "$work/in"
  for ((shard = 1; shard <= shards; ++shard)); do
    at=0 header=
    for ((t = 0; t < per_shard; ++t)); do
      name=bert.encoder.layer.$shard.$t
      [ $shard.$t = 1.0 ] && name=bert.embeddings.word_embeddings.weight
      [ $shard.$t = 1.1 ] && name=bert.embeddings.position_embeddings.weight
      header+="${header:+,}\"$name\":{\"dtype\":\"F32\",\"shape\":[$rows,$width],"
      header+="\"data_offsets\":[$at,$((at + tensor))]}"
      map+="${map:+,}\"$name\":\"model-0000$shard-of-0000$shards.safetensors\""
      at=$((at + tensor))
    done
    if [ $shard = 1 ]; then
      header+=",\"cls.predictions.bias\":{\"dtype\":\"F32\",\"shape\":[$rows],"
      header+="\"data_offsets\":[$at,$((at + 4 * rows))]}"
      map+=",\"cls.predictions.bias\":\"model-00001-of-0000$shards.safetensors\""
      at=$((at + 4 * rows))
    fi
    file "$work/in/model-0000$shard-of-0000$shards.safetensors" "{$header}" $at
    total=$((total + at))
  done
  printf '{"metadata":{"total_size":%d},"weight_map":{%s}}' $total "$map" \
    >"$work/in/model.safetensors.index.json"
  printf '{"model_type":"bert","architectures":["BertForMaskedLM"],"vocab_size":%d,
    "max_position_embeddings":%d}' "$rows" "$rows" >"$work/in/config.json"
}

# A line of 16 MiB that is one word, of bytes that tokens join or that they do not.
tok_line() { # BYTE TOKENIZER ARGUMENT…
  local limit_kib=$(((20 * 16 * mib + 64000000) / 1024))
  head -c $((16 * mib)) /dev/zero | tr '\0' "$1" >"$work/line"
  within tok encode "$work/$2" -j 1 "${@:3}" <"$work/line"
}

# A token folder of 200 MB, more than the limit: 1,000 sequences of 100,000 tokens.
make_tokens() {
  printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n' >"$work/vocab.txt"
  { yes a | head -n 100000 | tr '\n' ' ' && echo; } >"$work/line"
  for ((i = 0; i < 1000; ++i)); do cat "$work/line"; done | "$bin/tok" encode "$work/vocab.txt" --to "$work/tokens" -q
}

# within TOOL ARGUMENT…: runs it, and compares its peak with the limit. $work/out goes away.
within() {
  local code=0 kib
  "$peak" "$work/kib" "$bin/$1" "${@:2}" >"$work/stdout" 2>"$work/stderr" || code=$?
  kib=$(cat "$work/kib")
  printf '%7d of %d KiB  %s\n' "$kib" "$limit_kib" "${*//$work\//}"
  if [ $code -gt 1 ]; then
    printf 'failed: exit code %d: %s\n' $code "$(cat "$work/stderr")"
    failures=$((failures + 1))
  elif [ "$kib" -gt "$limit_kib" ]; then
    echo "failed: more than the limit"
    failures=$((failures + 1))
  fi
  rm -rf "$work"/out "$work"/out.*
}

make_checkpoint
in=$work/in
out=$work/out

# The measure itself: a program that holds three tensors and the allowance is caught.
if ! sh -c 'exec "$@"' sh "$peak" "$work/kib" tail -c $((3 * tensor + 64000000)) \
  <(head -c $((3 * tensor + 64000000)) /dev/zero) >/dev/null ||
  [ "$(cat "$work/kib")" -le "$limit_kib" ]; then
  echo "skipped: memory cannot be measured here"
  exit 77
fi

within ckpt convert "$in" -o "$out.safetensors" -j 4
within ckpt convert "$in" -o "$out" --dtype BF16 -j 4
within ckpt hash "$in" -j 4
within ckpt check --finite "$in" -j 4
"$bin/ckpt" convert "$in" -o "$work/tf" --format tensorflow -q || failures=$((failures + 1))
within ckpt check "$work/tf"
within ckpt convert "$work/tf" -o "$out.safetensors" -j 4
rm -rf "$work/tf"
within ckpt stats "$in" -j 4
within embed-fix mlm-correct "$in" -o "$out" --mask-token 4 -j 4
within embed-fix positions "$in" $((rows + 100)) --how interpolate -o "$out" -j 4
within embed-fix positions "$in" $((2 * rows)) --how hierarchical -o "$out" --dry-run -j 4
within embed-fix expr "$in" '#5 = mean(#6, #7) + 0.5*#8' -o "$out" -j 4
within embed-fix untie "$in" -o "$out" -j 4
within embed-fix stats "$in" -j 4
yes aaaaaaaaaaaaaaaa | head -n 100 | "$bin/tok" train -o "$work/bpe" --model bpe --size 261 -q || failures=$((failures + 1))
printf '{"version":"1.0","pre_tokenizer":{"type":"Metaspace","replacement":"\\u2581","prepend_scheme":"always","split":true},
"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["\\u2581",-2],["a",-1],["aa",-1.5],["aaaa",-2]]}}' >"$work/unigram.json"
for tokenizer in bpe unigram.json; do
  for byte in a '\001'; do
    tok_line $byte $tokenizer
    tok_line $byte $tokenizer --jsonl --with text
  done
done
make_tokens || failures=$((failures + 1))
limit_kib=100000
for format in lines blocks; do
  within lm-train "$work/tokens" -o "$out" --tokenizer "$work/vocab.txt" --objective clm --format $format --length 64 --steps 2 --hidden-size 16 \
    --num-hidden-layers 1 --num-attention-heads 1 -j 1
done
[ $failures = 0 ]
