#!/usr/bin/env bash
# A long training that is interrupted and killed at random moments, in the middle of checkpoints too, and resumed each
# time: it ends in the same bytes as one that nobody disturbed, and its memory does not grow.
#   tests/cli/long_training.sh BIN_DIR [--minutes M] [--seed N]
# --minutes M  about how long it takes [0.1]: two fifths are the undisturbed training; when they are over, no more signals come
# Exit codes: 0 all as it should be; 1 a failure; 2 usage.
# shellcheck disable=SC2015  # A && B || C where B cannot fail
set -u
export LC_ALL=C

usage() {
  sed -n '4,5p' "$0" >&2
  exit 2
}
bin=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)
# shellcheck source=tests/cli/sanitizer.sh
. "$(dirname "$0")/sanitizer.sh"
shift
minutes=0.1 seed=1
while [ $# -gt 0 ]; do
  case $1 in
    --minutes | --seed) [ $# -ge 2 ] || usage; declare "${1#--}=$2"; shift ;;
    *) usage ;;
  esac
  shift
done
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
RANDOM=$seed
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkfifo never
failures=0
fail() {
  printf 'failed: %s\n' "$*"
  failures=$((failures + 1))
}
# Waits without a process of its own.
pause() { read -r -t "$1" _ <>never; }
between() { # LEAST MOST, in milliseconds: seconds
  local ms=$(($1 + RANDOM % ($2 - $1 + 1)))
  printf '%d.%03d' $((ms / 1000)) $((ms % 1000))
}

printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the a cat cats dog dogs sat sits sit on mat . un '##believ' '##able' >vocab.txt
for _ in $(seq 50); do
  printf 'the cat sat on the mat.\nthe dogs sit on a mat.\nunbelievable dogs sit.\nthe dog sits on the cats.\n'
done >text
train() { # STEPS CHECKPOINT_EVERY FOLDER; ends in its place
  exec env --default-signal=INT,TERM "$bin/lm-train" text --tokenizer vocab.txt --length 16 --num-hidden-layers 2 \
    --hidden-size 64 --num-attention-heads 2 --batch-size 8 --dropout 0.1 --attention-dropout 0.1 -j 1 -q \
    --steps "$1" --checkpoint-every "$2" -o "$3" --resume
}

# As many steps as fit; a checkpoint about four times a second, or ten times in a short run. Pauses up to four seconds.
start=$SECONDS
begin=$EPOCHREALTIME
(train 100 100 probe) || { echo "failed: does not train at all"; exit 1; }
read -r steps every most end < <(awk -v b="$begin" -v e="$EPOCHREALTIME" -v m="$minutes" 'BEGIN {
  rate = 100 / (e - b); steps = int(rate * m * 60 * 0.4); if (steps < 200) steps = 200
  every = int(rate / 4); if (every > steps / 10) every = int(steps / 10)
  most = m * 60000 / 24; if (most > 4000) most = 4000
  print steps, every < 1 ? 1 : every, int(most), int(m * 60 + 0.5) }')

status_of() { sed -n "s/^$2:[^0-9]*\([0-9]*\) kB/\1/p" "/proc/$1/status" 2>/dev/null; }

# The undisturbed one. Its memory, each second: "seconds KiB".
(train "$steps" "$every" plain) &
pid=$!
begin=$SECONDS
while kill -0 $pid 2>/dev/null; do
  kib=$(status_of $pid VmRSS)
  [ -z "$kib" ] || echo "$((SECONDS - begin)) $kib" >>plain.memory
  pause 1
done
wait $pid || fail "the undisturbed training: exit code $?"
# A build that is slower than the trial foresaw gets its signals, too.
[ "$end" -ge $((2 * (SECONDS - start))) ] || end=$((2 * (SECONDS - start)))

# until_checkpoint PID: waits, for three seconds at most, until a checkpoint is being written.
until_checkpoint() {
  local i
  for ((i = 0; i < 3000; ++i)); do
    [ ! -e .broken.masque-tmp ] || return
    kill -0 "$1" 2>/dev/null || return
    pause 0.001
  done
}

turns=0 in_checkpoints=0 idle=0 last_size=0 INT=0 TERM=0 KILL=0
while :; do
  (train "$steps" "$every" broken) 2>said &
  pid=$!
  turns=$((turns + 1))
  if [ $((SECONDS - start)) -ge "$end" ]; then
    wait $pid || fail "the last turn: exit code $?: $(cat said)"
    break
  fi
  # Longer and longer where nothing comes of it, so that it ends on any machine.
  pause "$(between 20 $((most * (1 + idle))))"
  if [ $((RANDOM % 2)) = 0 ]; then
    until_checkpoint $pid
    pause 0.00$((RANDOM % 5))
  fi
  [ ! -e .broken.masque-tmp ] || in_checkpoints=$((in_checkpoints + 1))
  peak=$(status_of $pid VmHWM)
  names=(INT TERM KILL)
  name=${names[RANDOM % 3]}
  kill -"$name" $pid 2>/dev/null && declare "$name=$((${!name} + 1))"
  wait $pid 2>/dev/null
  code=$?
  [ $code != 0 ] || break
  size=$(stat -c %s broken/metrics.jsonl 2>/dev/null || echo 0)
  [ "$size" = "$last_size" ] && idle=$((idle + 1)) || idle=0
  last_size=$size
  case $name.$code in
    INT.130 | TERM.143 | KILL.137) ;;
    *) fail "turn $turns, SIG$name: exit code $code: $(cat said)" && break ;;
  esac
  [ ! -e broken ] || [ -e broken/training.safetensors ] || fail "turn $turns: no complete checkpoint"
  # Of turns that came to train: a peak of one that was only starting says nothing.
  [ ! -e broken ] || [ -z "$peak" ] || echo "$turns $peak" >>broken.memory
done

diff -r plain broken >diff.txt || fail "other bytes: $(head -n 3 diff.txt | tr '\n' ' ')"
[ -z "$(find . -name '*.masque-tmp')" ] || fail "left behind: $(find . -name '*.masque-tmp')"
[ "$INT" -gt 0 ] && [ "$TERM" -gt 0 ] && [ "$KILL" -gt 0 ] || [ "$minutes" = 0.1 ] || fail "not all signals came up"

# Flat: the most in the last third is at most that of the first third and 3 % more (pages that are touched late; 10 % of less than 50 samples).
flat() { # FILE NAME
  awk -v name="$2" '
    { x[NR] = $1; y[NR] = $2; sx += $1; sy += $2; sxx += $1 * $1; sxy += $1 * $2 }
    END {
      if (NR < 30) { printf "%s: %d samples, too few to compare, %d KiB\n", name, NR, y[NR]; exit }
      for (i = 1; i <= NR; ++i) {
        if (i <= NR / 3 && y[i] > first) first = y[i]
        if (i > 2 * NR / 3 && y[i] > last) last = y[i]
      }
      slope = (NR * sxy - sx * sy) / (NR * sxx - sx * sx)
      printf "%s: %d samples, at most %d KiB in the first third, %d in the last, slope %.2f KiB\n", name, NR, first, last, slope
      exit last > first * (NR < 50 ? 1.10 : 1.03)
    }' "$1" || fail "memory grows"
}
# A sanitizer keeps what was freed for a while.
if ! sanitized "$bin/lm-train"; then
  flat plain.memory "memory of the undisturbed training, by seconds"
  [ ! -e broken.memory ] || flat broken.memory "peaks of the resumed ones, by turns"
fi
echo "$steps steps, a checkpoint every $every: $turns turns, $INT SIGINT, $TERM SIGTERM, $KILL SIGKILL, $in_checkpoints in checkpoints; $failures failures"
[ "$failures" = 0 ]
