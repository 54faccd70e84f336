#!/usr/bin/env bash
# SIGINT ends every command within a second, wherever it is: each gets one at a random moment of long work.
#   tests/cli/interrupts.sh BIN_DIR [TURNS]
# What counts is computing after the signal, so that a busy machine changes nothing; a second of each processor is allowed, with a
# sanitizer 15.
# Exit codes: 0 all as it should be; 1 a failure.
set -u
export LC_ALL=C

bin=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)
turns=${2:-1}
data=$(cd "$(dirname "$0")/../data" && pwd)
# shellcheck source=tests/cli/sanitizer.sh
. "$(dirname "$0")/sanitizer.sh"
seconds=1
! sanitized "$bin/ckpt" || seconds=15  # they compute more
export PATH=$bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
processors=$(nproc)
tick=$(getconf CLK_TCK)
failures=0

# Inputs that do not end.
words() { yes 'the cat sat on the mat and the dog ran after it'; }
numbers() { yes '0 1 0 1 1 0 1 0'; }
records() { yes '{"ids":[1,5,6,7,8,9,10,11,12,13,2]}'; }
ids() { yes '5 6 7 8 9 10 11'; }
one_line() { tr '\0' 'a' </dev/zero; }
# Lines of some megabytes, which a tokenizer reads as a whole.
long_line() { words | head -c 20000000 | tr '\n' ' ' && echo; }
counted_words() { seq 1 600000 | tr '\n' ' ' && echo; }
letters() { head -c 200000 /dev/zero | tr '\0' a && echo b; }

byte() { printf '%b' "\\0$(printf %o $(($1 & 255)))"; }
# A safetensors file whose data is a hole: hole PATH HEADER BYTES
hole() {
  local length=${#2} i
  for i in 0 8 16 24 32 40 48 56; do byte $((length >> i)); done >"$1"
  printf %s "$2" >>"$1"
  truncate -s $((8 + length + $3)) "$1"
}
tall=$((1 << 23))
hole large.safetensors "{\"embeddings.word_embeddings.weight\":{\"dtype\":\"F32\",\"shape\":[$tall,256],\"data_offsets\":[0,$((tall * 1024))]}}" $((tall * 1024))
{ words | head -n 2000; } >text
cp -r "$data/model/bert" bert
{ echo '[PAD]'; echo '[CLS]'; echo '[SEP]'; echo '[MASK]'; echo '[UNK]'; printf '%s\n' the cat sat on mat and dog ran after it; } >vocab.txt

# An expression that needs many steps for a line of one letter. It reads added tokens, too, when the tokenizer is opened: none has
# this letter.
sed 's/"Bar"/"Bor"/g; s/"normalizer": *{[^}]*}/"normalizer": {"type": "Replace", "pattern": {"Regex": "((((((((((a*)*)*)*)*)*)*)*)*)*)*$"}, "content": "x"}/' \
  "$data/text/tokenizers/bert.json" >slow.json
grep -q 'a\*' slow.json || { echo "bert.json has no normalizer to replace" && exit 1; }
seq 1 90000 | tr '\n' ' ' >right
seq 90000 -1 1 | tr '\n' ' ' >wrong

echo '{"model_type": "masque", "vocab_size": 45, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 1, "type_vocab_size": 2, "max_position_embeddings": 64, "latent": {"num_hidden_layers": 1, "size": 3}}' >latent.json
ckpt new latent.json -o latent -q

# Clock ticks that a process has computed; nothing once it is gone.
computed() {
  local line
  { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
  line=${line##*) }
  # shellcheck disable=SC2086
  set -- $line
  [ "$1" != Z ] || return 1
  echo $((${12} + ${13}))
}

# Whether a process is still to become the command that it was made for.
is_shell() {
  local name
  { read -r name <"/proc/$1/comm"; } 2>/dev/null || return 1
  [ "$name" = bash ] || [ "$name" = "${0##*/}" ] || [ "$name" = env ]
}

# A command under SIGINT: interrupt INPUT COMMAND…  (INPUT: a function above, or -). Background jobs of a shell ignore SIGINT, and
# tools keep what they are given: env gives it back.
interrupt() {
  local input=$1 pid before now waited=0 status
  shift
  if [ "$input" = - ]; then
    env --default-signal=INT "$@" </dev/null >out 2>err &
  else
    env --default-signal=INT "$@" < <($input 2>/dev/null) >/dev/null 2>err &
  fi
  pid=$!
  # Until then it is this shell, and ignores the signal: on a busy machine that takes a while.
  while is_shell "$pid"; do sleep 0.01; done
  sleep "0.$((RANDOM % 7 + 1))"
  if ! before=$(computed $pid); then
    wait $pid
    echo "over before the signal, exit $?: $*: $(tail -n 1 err)"
    failures=$((failures + 1))
    return
  fi
  kill -INT $pid
  while now=$(computed $pid); do
    waited=$((waited + 1))
    if [ $((now - before)) -gt $((tick * processors * seconds)) ] || [ $waited -gt 1200 ]; then
      echo "no end $(((now - before) * 1000 / tick)) ms of computing after SIGINT: $*"
      failures=$((failures + 1))
      kill -KILL $pid
      break
    fi
    sleep 0.05
  done
  wait $pid 2>/dev/null
  status=$?
  if [ $status -ne 130 ] && [ $status -ne 137 ]; then
    echo "exit $status, expected 130: $*: $(tail -n 1 err)"
    failures=$((failures + 1))
  fi
  rm -rf output output.* ./.output*
}

for ((turn = 0; turn < turns; ++turn)); do
  interrupt - mask-viz flow 'bigbird(8,3,3)' -n 60000 -L 200
  interrupt - mask-viz report 'random(0.01)' -n 150000
  interrupt - mask-viz show 'bigbird(8,3,3)' -n 100000 --ascii --force
  interrupt - mask-viz diff 'bigbird(8,3,3)' 'bigbird(8,3,4)' -n 100000
  interrupt numbers mask-viz identify -
  interrupt one_line mask-viz identify -
  interrupt words tok encode "$data/text/tokenizers/bert.json"
  interrupt one_line tok encode "$data/text/tokenizers/bert.json" --max-line 1000000000000
  interrupt words tok encode "$data/text/tokenizers/bert.json" --to output
  interrupt letters tok encode slow.json
  interrupt long_line tok encode "$data/text/tokenizers/bert.json"
  interrupt long_line tok count "$data/text/tokenizers/bert.json"
  interrupt long_line lm-score score bert --tokenizer vocab.txt --policy chunk
  interrupt long_line attn-probe stats bert --tokenizer vocab.txt --policy skip
  interrupt counted_words tok train -o output --size 30000
  interrupt - length-gen lowrank --lengths 256 --key-sizes 8,16,32
  interrupt - lm-score compare wrong right
  interrupt - lm-train sweep text -o output --tokenizer vocab.txt --seeds 1000000
  interrupt words tok count "$data/text/tokenizers/bert.json"
  interrupt words tok train -o output --size 1000
  interrupt ids tok decode "$data/text/tokenizers/bert.json"
  interrupt records droptoken mlm --mask-token 4 --vocab-size 100
  interrupt words droptoken noise
  interrupt records droptoken pack --length 4096
  interrupt records droptoken stats
  interrupt words lm-train - -o output --tokenizer vocab.txt --steps 10
  interrupt - lm-train text -o output --tokenizer vocab.txt --steps 1000000
  interrupt words lm-write generate "$data/model/gpt2" --tokenizer vocab.txt --num-beams 3
  interrupt words lm-write generate bert --tokenizer vocab.txt --kind masked --how gibbs --length 4 --sweeps 1000000
  interrupt - lm-write latent sample latent --tokenizer vocab.txt --count 100000000
  interrupt words lm-write latent encode latent --tokenizer vocab.txt
  interrupt words ckpt-grow check bert bert --tokenizer vocab.txt
  interrupt - length-gen run --task copy --train-length 1-10 --eval-lengths 10,20,40 --steps 100000 --position rope,alibi -o output
  interrupt - ckpt check --finite large.safetensors
  interrupt - ckpt stats large.safetensors
  interrupt - ckpt hash large.safetensors
  interrupt - ckpt diff large.safetensors large.safetensors
  interrupt - ckpt cat large.safetensors embeddings.word_embeddings.weight
  interrupt - ckpt convert large.safetensors -o output.safetensors --dtype F16
  interrupt - embed-fix stats large.safetensors --tensor embeddings.word_embeddings.weight
done
[ $failures -eq 0 ] || { echo "$failures failures"; exit 1; }
echo "every command ended"
