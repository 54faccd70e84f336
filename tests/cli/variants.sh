#!/usr/bin/env bash
# Every row of attn-probe variants that a model can be trained with trains ten steps by the options that it names, is read again, and
# shows no leak under the masks that it promises to obey.
#   tests/cli/variants.sh BIN_DIR
# Exit codes: 0 all as it should be; 1 a failure.
set -u
export LC_ALL=C

bin=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)
export PATH=$bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0 trained=0 checked=0

printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the a cat dog mat sat ran on >vocab.txt
printf '%s\n' 'the cat sat on the mat' 'a dog ran' 'the dog sat on a cat' 'on the mat a cat ran' 'a mat sat' >text
attn-probe variants --no-header >variants || exit 1
# Fields may be empty, which read would skip between tabs.
awk -F '\t' '{ print $1 "|" $2 "|" $4 "|" $8 }' variants >rows

# NAME OBJECTIVE OPTIONS…
try() {
  local name=$1 objective=$2 predict
  shift 2
  rm -rf model
  [[ " $* " == *" --objective "* ]] || set -- "$@" --objective "$objective"
  if ! lm-train text -o model --tokenizer vocab.txt --steps 10 --length 12 --num-hidden-layers 2 --hidden-size 16 \
    --intermediate-size 16 --batch-size 3 -q -j 1 "$@" 2>err; then
    # Weights that a row's own token makes are no T-TA's.
    [[ $name == mixer* ]] && [ "$objective" = tta ] && grep -q 'its own token under any mask' err && return
    echo "$name: lm-train $*: $(cat err)"
    failures=$((failures + 1))
    return
  fi
  trained=$((trained + 1))
  if ! ckpt check model >/dev/null 2>err; then
    echo "$name: $*: ckpt check: $(cat err)"
    failures=$((failures + 1))
    return
  fi
  # Mixers, and scores that do not follow from a head's own, have no maps.
  if ! attn-probe stats model -q <text >out 2>err && ! grep -qE 'no attention weights|attention weights do not follow' err; then
    echo "$name: $*: not read again: $(cat err)"
    failures=$((failures + 1))
    return
  fi
  case $objective in
    tta) predict=self ;;
    clm) predict=next ;;
    *) return ;;
  esac
  if ! attn-probe check leak model --predict $predict -q -j 1 <text >out 2>err; then
    echo "$name: $*: leaks: $(cat out err)"
    failures=$((failures + 1))
    return
  fi
  checked=$((checked + 1))
}

while IFS='|' read -r kind name masks use; do
  if [ -z "$use" ]; then
    [ "$kind" = evaluation ] || { echo "$kind $name: no options for it"; failures=$((failures + 1)); }
    continue
  fi
  # Sizes are the user's choice; there are two layers.
  size=8
  [ "$name" != late_positions ] || size=1
  read -ra options <<<"${use/%N/$size}"
  # Positions inside of attention and those of the input: a mixer takes the latter alone.
  [ "$kind" != mixer ] || options+=(--position none)
  case $masks in
    any) objectives='mlm clm tta' ;;
    'full, causal') objectives='mlm clm' ;;
    full) objectives='mlm' ;;
    *) objectives='mlm' ;;
  esac
  # T-TA's stream reads the embeddings in every layer.
  [ "$name" != late_positions ] || objectives='mlm clm'
  for objective in $objectives; do try "$kind $name" "$objective" "${options[@]}"; done
done <rows
# Other numbers of heads of scores, of weights and of values.
for objective in mlm clm tta; do
  try 'talking heads 4, 3, 2' "$objective" --talking-heads both --softmax-heads 3 --value-heads 2
  try 'talking heads 4, 4, 6' "$objective" --talking-heads after --value-heads 6 --position urpe
done
[ $failures -eq 0 ] || { echo "$failures failures"; exit 1; }
echo "$trained models trained and read again, $checked without a leak"
[ $trained -gt 150 ] && [ $checked -gt 90 ] || { echo "fewer than expected"; exit 1; }
