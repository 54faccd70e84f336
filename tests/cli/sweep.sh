#!/usr/bin/env bash
# Runs of a sweep where something comes between: two processes with the same run, in both orders; a script for Slurm whose time is over, without
# Slurm (scripts/cluster_check has a real one).
#   tests/cli/sweep.sh BIN_DIR
set -u
bin=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)
export PATH=$bin:$PATH
work=$(mktemp -d)
pids=()
leave() {
  [ ${#pids[@]} = 0 ] || kill -KILL "${pids[@]}" 2>/dev/null
  rm -rf "$work"
}
trap leave EXIT
cd "$work" || exit 1
failures=0
fail() {
  printf 'failed: %s\n' "$*"
  failures=$((failures + 1))
}
# until_ COMMAND…: waits a minute at most until it succeeds.
until_() {
  local k
  for ((k = 0; k < 1200; ++k)); do
    "$@" && return
    sleep 0.05
  done
  return 1
}

printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the a cat cats dog dogs sat sits sit on mat . un '##believ' '##able' >vocab.txt
for _ in 1 2 3 4 5 6 7 8; do
  printf 'the cat sat on the mat.\nthe dogs sit on a mat.\nunbelievable dogs sit.\nthe dog sits.\n'
done >text
small=(text --tokenizer vocab.txt --num-hidden-layers 1 --hidden-size 16 --num-attention-heads 2 --length 16 --batch-size 8 -j 1)
long=(lm-train "${small[@]}" --steps 100000000 --checkpoint-every 20 -o run --resume)

# refused COMMAND…: exit code 3, and one line that says why.
refused() {
  local code=0
  "$@" >out 2>err || code=$?
  [ $code = 3 ] && [ "$(wc -l <err)" = 1 ] && grep -q ': is being written by another process$' err || fail "$1: exit code $code, $(cat err)"
}

# The same run twice: the second one is refused while the first is at work, and takes over when it is gone, however it ended.
"${long[@]}" 2>first.err &
first=$!
pids+=("$first")
until_ test -s run/metrics.jsonl || fail "the first run does not begin: $(cat first.err)"
refused "${long[@]}"
kill -KILL $first
wait $first 2>/dev/null
before=$(wc -l <run/metrics.jsonl)
"${long[@]}" 2>second.err &
second=$!
pids+=("$second")
# It goes on from the checkpoint, and is the one at work now.
has_more() { [ "$(wc -l <run/metrics.jsonl)" -gt "$before" ]; }
until_ has_more || fail "the second run does not go on: $(cat second.err)"
refused "${long[@]}"
kill -TERM $second
wait $second
[ $? = 143 ] || fail "the second run: $(cat second.err)"
grep -q 'resuming after step' second.err || fail "the second run began anew: $(cat second.err)"
steps=$(($(wc -l <run/metrics.jsonl) + 20))
"${long[@]/100000000/$steps}" 2>third.err || fail "the end of the run: $(cat third.err)"
"${long[@]/100000000/$steps}" 2>third.err || fail "a finished run: $(cat third.err)"
grep -q 'finished after step' third.err || fail "a finished run was trained again: $(cat third.err)"
lm-train "${small[@]}" --steps 100000000 --decay constant -o other 2>none &
other=$!
pids+=("$other")
until_ test -e other || fail "another run does not begin"
kill -TERM $other
wait $other
# Nothing stays of the locks.
find . -maxdepth 1 -name '.*.masque-tmp' | grep . && fail "locks were left behind"

# Both at once, many times: one of them does the work, or both one after the other.
lm-train "${small[@]}" --steps 5 -o alone -q || fail "alone"
for _ in 1 2 3 4; do
  rm -rf twice
  lm-train "${small[@]}" --steps 5 -o twice --resume -q 2>a.err &
  a=$!
  b_code=0 a_code=0
  lm-train "${small[@]}" --steps 5 -o twice --resume -q 2>b.err || b_code=$?
  wait $a || a_code=$?
  case $a_code$b_code in
    00 | 03 | 30) ;;
    *) fail "twice at once: exit codes $a_code and $b_code: $(cat a.err b.err)" ;;
  esac
  diff -r alone twice || fail "twice at once: other bytes"
done

# A cell of length-gen, and labels.
cell=(length-gen run --cell 1/1 --task copy --train-length 1-3 --eval-lengths 3 --eval-examples 2 --seeds 1 --position rope
  --num-hidden-layers 1 --hidden-size 8 --num-attention-heads 1 --batch-size 2 -j 1 -q --steps 100000000 -o lengths)
"${cell[@]}" 2>first.err &
first=$!
pids+=("$first")
until_ sh -c 'ls -A lengths/cells 2>/dev/null | grep -q lock' || fail "length-gen does not begin: $(cat first.err)"
refused "${cell[@]}"
kill -TERM $first
wait $first
for _ in 1 2 3 4; do printf 'the cat sat on the mat.\tcat\nthe dogs sit on a mat.\tdog\n'; done >labels
label=(lm-train classify labels --tokenizer vocab.txt --num-hidden-layers 1 --hidden-size 16 --num-attention-heads 2 -j 1 -q
  --steps 100000000 -o labelled)
"${label[@]}" 2>first.err &
first=$!
pids+=("$first")
until_ test -e .labelled.lock.masque-tmp || fail "classify does not begin: $(cat first.err)"
refused "${label[@]}"
kill -TERM $first
wait $first

# A script for Slurm whose time is over: the program saves, and the task is queued again. By any other signal it is not.
printf '#!/bin/sh\necho "$@" >>queued\n' >scontrol
chmod +x scontrol
export PATH=$work:$PATH SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=2
lm-train sweep "${small[@]}" --steps 100000000 --vary learning-rate=0.1,0.002 -o sweep --print-slurm --slurm-time 2:00:00 \
  --slurm-memory 1G --slurm-cpus 3 >script || fail "--print-slurm"
for line in '--array=1-2' '--time=2:00:00' '--mem=1G' '--cpus-per-task=3' '--requeue'; do
  grep -qx -e "#SBATCH $line" script || fail "the script has no $line"
done
if command -v shellcheck >/dev/null; then shellcheck script || fail "shellcheck"; fi
# stopped SIGNAL CODE: the script, and its program, when this signal comes to the script, as Slurm sends it.
stopped() {
  local code=0
  : >queued
  bash script 2>script.err &
  local script=$!
  pids+=("$script")
  until_ test -e sweep/.learning-rate=0.002_seed=0.lock.masque-tmp || fail "the script does not begin: $(cat script.err)"
  [ "$1" != TERM ] || kill -TERM "$(ps -o pid= --ppid $script)"
  kill "-$1" $script
  wait $script || code=$?
  [ $code = "$2" ] || fail "the script under SIG$1: exit code $code: $(cat script.err)"
  grep -q 'lm-train: interrupted; ' script.err || fail "SIG$1: it was not the program's end: $(cat script.err)"
}
stopped USR1 143
grep -qx 'requeue 7_2' queued || fail "not queued again: $(cat queued)"
stopped TERM 143
[ ! -s queued ] || fail "queued again after scancel: $(cat queued)"
lm-train collect sweep >out 2>err
grep -q '1 of 2 runs is missing: learning-rate=0.1_seed=0; 1 of 2 runs is unfinished: learning-rate=0.002_seed=0$' err || fail "collect: $(cat err)"
[ ! -e sweep/learning-rate=0.1_seed=0 ] || fail "the script ran another cell"
sed 's/100000000/1/' script >short
SLURM_ARRAY_TASK_ID=1 bash short 2>script.err || fail "the script of a short run: $(cat script.err)"
code=0
SLURM_ARRAY_TASK_ID=3 bash short 2>script.err || code=$?
[ $code = 2 ] && grep -q 'no cell 3' script.err || fail "a cell that is not there: exit code $code, $(cat script.err)"

# Names with what a shell, xargs or parallel may read as something else: each command of the list gives the program the words that it
# was made of, whoever reads the list.
unset SLURM_ARRAY_JOB_ID
mkdir fake
# shellcheck disable=SC2016  # the words of the program that is run
printf '%s\n' '#!/bin/sh' 'for word; do printf "%s\\0" "$word"; done >>"$WORDS"' >fake/lm-train
cp fake/lm-train fake/length-gen
chmod +x fake/*
readers=(sh "xargs -d '\n' -I {} sh -c {}" slurm)
if command -v parallel >/dev/null; then
  readers+=('parallel --will-cite -j 1 -k')
else
  echo "sweep: left out GNU parallel: not installed"
fi
printf 'task = copy\ntrain-length = 3\neval-lengths = 3\nsteps = 1\nseeds = 1\nposition = rope\n' >lengths.conf
# shellcheck disable=SC2016,SC2088  # as they are
for name in 'a b' "it's" 'a"b' '$(touch PWNED)' '`touch PWNED`' 'a;touch PWNED' 'a&touch PWNED' 'a|touch PWNED' 'a>PWNED' '{}' 'a{}b' 'a{1}b' \
  '{= `touch PWNED` =}' '{#}' '{%}' 'a\b' 'a\nb' '*' '~' '~root' '#a' ' a' 'a ' '!a' 'größe' '%1' '{a,b}' '$HOME' '\' '"' "'" '-x' '--' ':::'; do
  mkdir -p "./$name"
  for list in sweep lengths; do
    if [ $list = sweep ]; then
      command=(lm-train sweep --tokenizer bytes --objective clm --steps 1 -o "./$name/o" -- "$name")
    else
      command=(length-gen sweep lengths.conf "-o./$name")
    fi
    "${command[@]}" >list 2>err || fail "sweep of '$name': $(cat err)"
    [ "$(wc -l <list)" = 1 ] || fail "sweep of '$name': $(wc -l <list) lines"
    "${command[@]}" --print-slurm >script 2>err || "${command[@]:0:2}" --print-slurm "${command[@]:2}" >script 2>err || fail "script of '$name': $(cat err)"
    for reader in "${readers[@]}"; do
      rm -f words
      if [ "$reader" = slurm ]; then
        PATH=$work/fake:$PATH WORDS=$work/words SLURM_ARRAY_TASK_ID=1 bash script >out 2>err </dev/null
      else
        PATH=$work/fake:$PATH WORDS=$work/words sh -c "$reader" <list >out 2>err
      fi
      if [ "$reader" = sh ]; then mv words expected; else cmp -s expected words || fail "'$name' as $reader reads it: $(tr '\0' ' ' <words)"; fi
    done
    tr '\0' '\n' <expected | grep -qxF -e "$name" -e "./$name" -e "-o./$name" || fail "'$name' is not a word of its command: $(cat list)"
    [ ! -e PWNED ] || fail "'$name' was run"
  done
  rm -rf "./$name"
done

[ $failures = 0 ] && echo "sweep: all as it should be"
[ $failures = 0 ]
