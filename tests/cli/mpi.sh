#!/usr/bin/env bash
# lm-train under mpirun: the loss of one process, the same bytes twice, one line for an error, a
# signal.
#   tests/cli/mpi.sh BIN_DIR
# Exit codes: 0 all as it should be; 1 a failure; 77 skipped: mpirun cannot start anything here.
set -u
export LC_ALL=C
command -v mpirun >/dev/null || { echo "skipped: no Open MPI (scripts/setup --mpi)"; exit 77; }
# shellcheck source=scripts/mpirun.sh
. "$(dirname "$0")/../../scripts/mpirun.sh"
train=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)/lm-train
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
ranks_of() { mpirun "${mpirun_quiet[@]}" --oversubscribe --bind-to none -np "$@"; }
ranks() { ranks_of 2 "$@"; }
grep -q MPI_Init "$train" || { echo "skipped: built without Open MPI"; exit 77; }
ranks true 2>/dev/null || { echo "skipped: mpirun cannot start processes"; exit 77; }
failures=0
fail() {
  printf 'failed: %s\n' "$*"
  failures=$((failures + 1))
}

printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the a cat cats dog dogs sat sits sit on mat . un '##believ' '##able' >vocab.txt
for _ in 1 2 3 4 5 6 7 8; do
  printf 'the cat sat on the mat.\nthe dogs sit on a mat.\nunbelievable dogs sit.\nthe dog sits.\n'
done >text
small=(text --tokenizer vocab.txt --num-hidden-layers 1 --hidden-size 16 --num-attention-heads 2
  --length 16 --batch-size 7 -j 1 -q)

for objective in mlm electra mae adversarial diversity; do
  o=(--objective "$objective" --steps 8 --eval text)
  [ $objective != adversarial ] || o=(--objective electra --adversarial --steps 8 --eval text)
  [ $objective != diversity ] || o=(--objective mlm --diversity "mi:0.5,d2:0.2" --steps 8 --eval text)
  "$train" "${small[@]}" -o one.$objective "${o[@]}" || fail "$objective: one process"
  for run in a b; do
    ranks "$train" "${small[@]}" -o $run.$objective "${o[@]}" || fail "$objective: two processes"
  done
  for file in model.safetensors training.safetensors metrics.jsonl; do
    cmp a.$objective/$file b.$objective/$file || fail "$objective: $file differs between runs"
  done
  # Losses of both to five digits.
  for run in one a; do
    grep -o '"loss":[0-9.]*' $run.$objective/metrics.jsonl | awk -F: '{printf "%.5g\n", $2}' >$run.losses
  done
  [ "$(wc -l <a.losses)" = 8 ] || fail "$objective: steps"
  cmp one.losses a.losses || fail "$objective: other losses than one process has"
done

# A model of several buckets: an optimizer in parts writes the same bytes, also from its checkpoint;
# gradients in bfloat16 change the loss little.
large=(text --tokenizer vocab.txt --num-hidden-layers 3 --hidden-size 256 --num-attention-heads 4
  --length 16 --batch-size 7 -j 1 -q --objective clm --steps 8)
ranks "$train" "${large[@]}" -o whole || fail "a large model"
ranks "$train" "${large[@]}" -o parts --shard-optimizer || fail "--shard-optimizer"
for file in model.safetensors training.safetensors metrics.jsonl; do
  cmp whole/$file parts/$file || fail "--shard-optimizer: other $file"
done
ranks "$train" "${large[@]}" -o half --steps 4 --decay constant || fail "--shard-optimizer: half"
ranks "$train" "${large[@]}" -o more --steps 8 --decay constant || fail "--shard-optimizer: all"
ranks "$train" "${large[@]}" -o half --steps 8 --decay constant --resume --shard-optimizer || fail "--shard-optimizer: resume"
cmp half/training.safetensors more/training.safetensors || fail "--shard-optimizer: resume writes other bytes"
"$train" "${large[@]}" -o single || fail "a large model of one process"
for run in a b; do ranks "$train" "${large[@]}" -o $run.bf16 --gradient-precision bf16 || fail "--gradient-precision"; done
cmp a.bf16/model.safetensors b.bf16/model.safetensors || fail "--gradient-precision: two runs differ"
ranks "$train" "${large[@]}" -o c.bf16 --gradient-precision bf16 --shard-optimizer || fail "--gradient-precision in parts"
cmp a.bf16/training.safetensors c.bf16/training.safetensors || fail "--gradient-precision: other bytes in parts"
# losses FOLDER DIGITS: of each step.
losses() { grep -o '"loss":[0-9.]*' "$1/metrics.jsonl" | awk -F: -v d="$2" '{ printf "%." d "g\n", $2 }'; }
[ "$(losses whole 5)" = "$(losses single 5)" ] || fail "a large model: other losses than one process has"
[ "$(losses whole 9)" != "$(losses a.bf16 9)" ] || fail "--gradient-precision: no other losses"
paste <(losses single 9) <(losses a.bf16 9) | awk '{ d = $1 / $2 - 1; if (d > 0.01 || d < -0.01) exit 1 }' ||
  fail "--gradient-precision: losses are far away: $(losses a.bf16 9)"
# With another number of processes the loss stays, but for rounding.
ranks_of 3 "$train" "${large[@]}" -o three --steps 4 --decay constant || fail "three processes"
ranks "$train" "${large[@]}" -o three --steps 8 --decay constant --resume || fail "another number of processes"
[ "$(losses three 5)" = "$(losses more 5)" ] || fail "another number of processes: other losses"

# Labels of texts: two seeds.
for _ in 1 2 3 4 5 6 7 8; do printf 'the cat sat on the mat.\tcat\nthe dogs sit on a mat.\tdog\nthe cats sit.\tcat\nunbelievable dogs.\tdog\n'; done >labels
labels=(classify labels --tokenizer vocab.txt --num-hidden-layers 1 --hidden-size 16 --num-attention-heads 2 --batch-size 7 --steps 8
  --seeds 2 --dropout 0 --attention-dropout 0 -j 1 -q)
"$train" "${labels[@]}" -o one.labels >one.table || fail "classify: one process"
for run in a b; do ranks "$train" "${labels[@]}" -o $run.labels >$run.table || fail "classify: two processes"; done
cmp a.table b.table && diff -r a.labels b.labels || fail "classify: two runs differ"
for run in one a; do
  for seed in 0 1; do grep -o '"loss":[0-9.]*' $run.labels/seed-$seed/metrics.jsonl | awk -F: '{printf "%.5g\n", $2}'; done >$run.losses
done
[ "$(wc -l <a.losses)" = 16 ] || fail "classify: steps"
cmp one.losses a.losses || fail "classify: other losses than one process has"
ranks "$train" "${labels[@]}" -o a.labels --resume >again.table || fail "classify: resume"
cmp a.table again.table || fail "classify: resume prints another table"

# Goes on from what it wrote.
ranks "$train" "${small[@]}" -o a.mlm --steps 8 --resume --eval text || fail "resume"
cmp a.mlm/training.safetensors b.mlm/training.safetensors || fail "resume: other bytes"

# printed_once PATTERN: lm-train printed exactly one line, which matches after its name.
printed_once() { [ "$(grep -c '^lm-train: ' said)" = 1 ] && grep -q "^lm-train: $1" said; }
# lines NAME CODE PATTERN ARGUMENT…: the exit code, and exactly one line of ours, which matches.
lines() {
  local name=$1 code=$2 pattern=$3 found=0
  shift 3
  ranks "$train" "$@" 2>said || found=$?
  [ "$found" = "$code" ] || fail "$name: exit code $found, expected $code"
  printed_once ".*$pattern" || fail "$name: $(cat said)"
}
lines "folder" 3 'a.mlm: folder exists' "${small[@]}" -o a.mlm
lines "batch" 2 'sequence for each of 2 processes' "${small[@]}" -o n --batch-size 1
lines "option" 2 "no option '--bad'" "${small[@]}" -o n --bad
lines "stdin" 2 'several processes cannot share standard input' - --tokenizer vocab.txt -o n
lines "loss" 3 'not finite' "${small[@]}" -o l --learning-rate 1e3 --warmup 0 --clip 0 --steps 2000 \
  --norm-placement pre
# Only the second process fails: its text is another one.
cat >alone <<'END'
[ "$OMPI_COMM_WORLD_RANK" = 1 ] && text=$2 || text=$1
shift 2
exec "$@" "$text" --tokenizer vocab.txt -o n -q
END
ranks sh alone text none "$train" 2>said
code=$?
[ $code = 3 ] && printed_once none ||
  fail "an error of the second process: exit code $code, $(cat said)"
head -n 8 text >other
ranks sh alone text other "$train" 2>said
code=$?
[ $code = 3 ] && printed_once '.*not the same for all' ||
  fail "other texts: exit code $code, $(cat said)"
[ ! -e n ] || fail "a folder after errors"

# A signal, and the first one saves. It goes to the processes: mpirun would soon kill them.
cat >noted <<'END'
echo $$ >pid.$OMPI_COMM_WORLD_RANK
exec "$@"
END
ranks sh noted "$train" "${small[@]}" -o stopped --steps 20000000 2>said &
for _ in $(seq 300); do
  [ -e stopped ] && break
  sleep 0.1
done
sleep 1
kill -INT "$(cat pid.0)" "$(cat pid.1)" || fail "a signal: it ended before"
wait $!
code=$?
[ $code = 130 ] && [ "$(wc -l <stopped/metrics.jsonl)" -gt 0 ] || fail "a signal: exit code $code, $(cat said)"
[ "$(grep -c '^lm-train: interrupted; stopped is at step' said)" = 1 ] || fail "a signal: $(cat said)"

# A process is killed: all end with one line, the folder has the last checkpoint, and goes on to the same bytes.
o=("${small[@]}" --steps 300 --checkpoint-every 20)
ranks "$train" "${o[@]}" -o undisturbed || fail "a kill: undisturbed"
cat >with_pid <<'END'
echo $$ >"pid.$OMPI_COMM_WORLD_RANK"
exec "$@"
END
# Open MPI 5 names the killed process itself, and kills the others 0.2 s later, often before they print anything.
only_mpirun_printed() { [ ${#mpirun_quiet[@]} = 0 ] && grep -q 'exited on' said && ! grep -q '^lm-train: ' said; }
# kill_rank RANK LINE OPTION…
kill_rank() {
  local rank=$1 line=$2 begin code k
  shift 2
  rm -rf pid.* killed
  ranks sh with_pid "$train" "${o[@]}" -o killed "$@" 2>said &
  for ((k = 0; k < 300; ++k)); do
    [ -s killed/metrics.jsonl ] && break
    sleep 0.05
  done
  kill -9 "$(cat "pid.$rank")" || fail "a kill of $rank: it ended before"
  begin=$SECONDS
  wait $!
  code=$?
  [ $code != 0 ] && [ $((SECONDS - begin)) -le 20 ] || fail "a kill of $rank: exit code $code after $((SECONDS - begin)) s"
  for ((k = 0; k < 100; ++k)); do kill -0 "$(cat "pid.$((1 - rank))")" 2>none || break; sleep 0.1; done
  [ $k -lt 100 ] || fail "a kill of $rank: the other process goes on"
  printed_once "$line" || only_mpirun_printed || fail "a kill of $rank: $(cat said)"
  ranks "$train" "${o[@]}" -o killed --resume || fail "a kill of $rank: resume"
  for file in model.safetensors training.safetensors metrics.jsonl; do
    cmp killed/$file undisturbed/$file || fail "a kill of $rank: $file differs from that of an undisturbed run"
  done
}
kill_rank 1 'interrupted; killed is at step'
kill_rank 0 'process 0 has ended; the output folder has its last checkpoint'
kill_rank 1 'interrupted' --shard-optimizer

[ $failures = 0 ] && echo "mpi: all as it should be"
[ $failures = 0 ]
