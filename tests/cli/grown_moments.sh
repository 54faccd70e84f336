#!/usr/bin/env bash
# The moments that ckpt-grow gives a larger model are those that training gives it: with betas of 0 they are the gradient of one step
# and its square.
#   tests/cli/grown_moments.sh BIN_DIR
# Exit codes: 0 all as it should be; 1 a failure.
set -eu
export LC_ALL=C

bin=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)
data=$(cd "$(dirname "$0")/../data" && pwd)
export PATH=$bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0
fail() {
  echo "$*"
  failures=$((failures + 1))
}

printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the a cat dog mat sat ran on >vocab.txt
printf '%s\n' 'the cat sat on the mat' 'a dog ran' 'the dog sat on a cat' 'on the mat a cat ran' 'a mat sat' >text
one_step() {  # INIT OUTPUT OBJECTIVE
  lm-train text -o "$2" --init "$1" --objective "$3" --tokenizer vocab.txt --batch-size 5 --steps 1 --learning-rate 1e-12 --warmup 0 \
    --beta1 0 --beta2 0 --clip 0 --weight-decay 0 -q
}
# Tensors PART.… of two states: how many there are, and the largest difference of one against its largest number, or against a
# 10,000,000th of the largest of all: keys have biases without a gradient.
difference() {
  {
    ckpt stats "$2/training.safetensors" --no-header
    ckpt diff "$1/training.safetensors" "$2/training.safetensors" --no-header -q || true
  } | awk -F '\t' -v part="$3." -v without="$4" '
    function abs(x) { return x < 0 ? -x : x }
    index($1, part) != 1 || (without != "" && $1 ~ without) { next }
    $2 == "F32" {
      ++count
      size[$1] = abs($5) > abs($6) ? abs($5) : abs($6)
      if (size[$1] > largest) largest = size[$1]
      next
    }
    $2 == "values" { difference[$1] = $6; next }
    { unlike = $1 " " $2 }
    END {
      for (name in difference) {
        scale = size[name] > largest * 1e-7 ? size[name] : largest * 1e-7
        if (scale == 0 || difference[name] / scale > most) most = scale == 0 ? 1 : difference[name] / scale
      }
      print count + 0, unlike == "" ? most + 0 : unlike
    }'
}

compared=0
check() {  # NAME OBJECTIVE PARTS WITHOUT GROWTH…: tensors that match WITHOUT are not compared
  local name=$1 objective=$2 parts=$3 without=$4 part count error
  shift 4
  rm -rf small grown trained
  one_step model small "$objective"
  ckpt-grow "$1" small -o grown "${@:2}" -q
  one_step grown trained "$objective"
  for part in $parts; do
    read -r count error <<<"$(difference grown trained "$part" "$without")"
    if [ "${count:-0}" -lt 15 ] || ! awk -v x="$error" 'BEGIN { exit !(x <= 1e-3) }'; then
      fail "$name: $* : $part: $count tensors, they differ by $error of the largest"
    fi
    compared=$((compared + 1))
  done
}

for row in bert-plain:mlm roberta-plain:mlm gpt2-plain:clm gpt_neox-plain:clm llama-bias:clm modernbert-plain:mlm deberta_v2-conv:mlm \
  t5-encoder:mlm; do
  name=${row%:*}
  rm -rf model
  ckpt new "$data/family/$name.config.json" -o model --seed 5 -q
  check "$name" "${row#*:}" 'first second' '' width --factor 2
done
# Pre-norm: layers that add nothing change no gradient. Their own begin at 0.
for name in gpt2-plain llama-bias; do
  rm -rf model
  ckpt new "$data/family/$name.config.json" -o model --seed 5 -q
  check "$name" clm 'first second' '[.][23][.]' depth --layers 4 --how zero
  ckpt ls grown/training.safetensors >grown.txt
  grep -q 'first.*[.]3[.]' grown.txt || fail "$name: no moments of layer 3"
done

# Its own moments are taken as they are, and nothing else is.
one_step model again clm
lm-train text -o warm --init again --init-moments --objective clm --tokenizer vocab.txt --batch-size 5 --steps 0 -q
ckpt diff again/training.safetensors warm/training.safetensors -q >/dev/null || fail "moments were not taken over"
cp -r grown resumed
! lm-train text -o resumed --init grown --objective clm --tokenizer vocab.txt --steps 2 --resume 2>err || fail "a grown state was resumed"

# What the run has recorded of itself goes on; moments of other values do not.
ckpt-grow width again -o recorded --factor 2 -q
for fact in '"masque.objective":"clm"' '"masque.split":' '"masque.rate":'; do
  grep -qaF "$fact" recorded/training.safetensors || fail "the grown state does not have $fact"
done
ckpt new "$data/family/llama-bias.config.json" -o other --seed 6 -q
cp -r again changed
cp other/model.safetensors changed
for growth in 'width --factor 2' 'depth --layers 4' 'both --factor 2 --layers 4'; do
  rm -rf none
  # shellcheck disable=SC2086
  ! ckpt-grow $growth changed -o none -q 2>err || fail "$growth: moments of other values were grown"
  grep -q 'the moments belong to other values of' err || fail "the message is another: $(cat err)"
  [ ! -e none ] || fail "$growth: there is an output"
done

rm grown/training.safetensors
! lm-train text -o none --init grown --init-moments --objective clm --tokenizer vocab.txt --steps 1 2>err || fail "no state, no error"
grep -q 'training.safetensors' err || fail "the message does not name the file: $(cat err)"
[ $failures -eq 0 ] || { echo "$failures failures"; exit 1; }
echo "$compared comparisons: alike"
