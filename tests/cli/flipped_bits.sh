#!/usr/bin/env bash
# A flipped bit in a file of ours that a command reads again: the command refuses the file by name, or does what it does without.
#   tests/cli/flipped_bits.sh BIN_DIR [--all]
# A few bits of each file; with --all one of each byte up to 200, and 200 others.
# Exit codes: 0 all as it should be; 1 a failure.
set -u
export LC_ALL=C

bin=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)
all=${2-}
export PATH=$bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
fail() {
  printf 'failed: %s\n' "$*"
  failures=$((failures + 1))
}

# flip FILE BYTE BIT
flip() {
  local byte
  byte=$(od -An -tu1 -j "$2" -N 1 "$1")
  # shellcheck disable=SC2059  # the octal number of a byte
  printf "\\$(printf %o $((byte ^ (1 << $3))))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# each NAME FOLDER COMMAND [FILE]: COMMAND reads files of FOLDER, which is called 'state' then, and writes below state, out, or to
# stdout. Bits of FILE alone are flipped where the others are not the state of a command.
each() {
  local name=$1 from=$2 command=$3 only=${4-*} file size place places code runs=0 refused=0
  rm -rf state out && cp -r "$from" state
  sh -c "$command" >clean.out 2>clean.err </dev/null || fail "$name, without a flipped bit: $(tail -n 1 clean.err)"
  rm -rf clean.state clean.folder && mv state clean.state
  [ ! -e out ] || mv out clean.folder
  while read -r file; do
    size=$(stat -c %s "$from/$file")
    [ "$size" -gt 0 ] || continue
    places=$(for ((place = 0; place < 4; ++place)); do echo $(((RANDOM * 32768 + RANDOM) % size)); done)
    if [ -n "$all" ]; then
      places=$(for ((place = 0; place < 200; ++place)); do echo $((place < size ? place : 0)) $(((RANDOM * 32768 + RANDOM) % size)); done)
    fi
    for place in $places; do
      rm -rf state out && cp -r "$from" state
      flip "state/$file" "$place" $((RANDOM % 8))
      code=0
      timeout -k 1 100 sh -c "$command" >run.out 2>run.err </dev/null || code=$?
      runs=$((runs + 1))
      if [ $code = 0 ]; then
        cmp -s clean.out run.out || fail "$name: byte $place of $file: exit 0, but other output"
        [ ! -e clean.folder ] || diff -r clean.folder out >differences || fail "$name: byte $place of $file: exit 0, but $(head -n 1 differences)"
        # What was flipped and not read is as it was then.
        diff -r -q clean.state state >differences
        grep -v -F -e "clean.state/$file" -e "state/${file%/*}" differences | grep . && fail "$name: byte $place of $file: exit 0, but other files"
      elif [ $code = 3 ] || [ $code = 2 ] || [ $code = 1 ]; then
        refused=$((refused + 1))
        grep -q 'state' run.err || fail "$name: byte $place of $file: no file is named: $(tail -n 1 run.err)"
        [ ! -e out ] || [ "$name" = collect ] || fail "$name: byte $place of $file: refused, but there is an output"
      else
        fail "$name: byte $place of $file: exit $code: $(tail -n 1 run.err)"
      fi
    done
  done < <(cd "$from" && find . -type f -name "$only" ! -name '*.svg' | sort | cut -c 3-)
  printf '%s: %d flipped bits, %d refused\n' "$name" $runs $refused
  [ $refused -gt 0 ] || fail "$name: nothing was refused"
}

RANDOM=7  # the same places every time
{ printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the a cat cats dog dogs sat sits sit on mat . un '##believ' '##able'; } >vocab.txt
for _ in 1 2 3 4; do printf 'the cat sat on the mat.\nthe dogs sit on a mat.\nunbelievable dogs sit.\nthe dog sits.\n'; done >text
small="text --tokenizer vocab.txt --num-hidden-layers 1 --hidden-size 8 --num-attention-heads 2 --length 8 --batch-size 4 -j 1 -q --decay constant"
# shellcheck disable=SC2086  # options
lm-train $small --steps 2 -o run || exit 1
each resume run "lm-train $small --steps 4 -o state --resume"
each 'moments of another run' run "lm-train text --tokenizer vocab.txt --init state --init-moments --length 8 --batch-size 4 -j 1 -q --steps 1 -o out" training.safetensors
each grow run "ckpt-grow width state -o out --factor 2 -q" training.safetensors
each 'weights with moments' run "lm-train text --tokenizer vocab.txt --init state --init-moments --length 8 --batch-size 4 -j 1 -q --steps 1 -o out" model.safetensors
each 'weights that grow' run "ckpt-grow depth state -o out --layers 2 -q" model.safetensors

mkdir scores stats
printf 'the cat sat\na dog\nthe cats\n' >short
for shard in 1 2; do
  lm-score ppl run --shard $shard/2 -q <short >scores/$shard.jsonl && attn-probe stats run --shard $shard/2 -q <short >stats/$shard.jsonl || exit 1
done
each 'merge of scores' scores "lm-score merge state/1.jsonl state/2.jsonl --json"
each 'merge of statistics' stats "attn-probe merge state/1.jsonl state/2.jsonl --json"

tok encode vocab.txt --to part -q <text || exit 1
each merge part "tok merge state -o out"

# shellcheck disable=SC2086
lm-train sweep $small --steps 2 -o swept --seeds 2 >list && sh list || exit 1
each collect swept "lm-train collect state"

length="--task copy --train-length 1-3 --eval-lengths 3,6 --eval-examples 2 --steps 2 --seeds 2 --position rope --num-hidden-layers 1 --hidden-size 8 --num-attention-heads 1 --batch-size 2 -q -j 1"
# shellcheck disable=SC2086
for cell in 1 2; do length-gen run --cell $cell/2 $length -o cells >none || exit 1; done
each 'collect of lengths' cells "length-gen collect state -o out"
each 'lengths again' cells "length-gen run --cell 1/2 $length -o state"

for _ in 1 2 3 4; do printf 'the cat sat on the mat.\tcat\nthe dogs sit on a mat.\tdog\n'; done >labels
label="labels --tokenizer vocab.txt --num-hidden-layers 1 --hidden-size 8 --num-attention-heads 2 -j 1 -q --steps 2"
# shellcheck disable=SC2086
lm-train classify $label -o labelled >none || exit 1
each labels labelled "lm-train classify $label -o state --resume"

[ $failures = 0 ] || { echo "$failures failures"; exit 1; }
