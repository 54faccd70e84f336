#!/usr/bin/env bash
# lm-train under mpirun: the loss of one process, the same bytes twice, one line for an error, a
# signal.
#   tests/cli/mpi.sh BIN_DIR
# Exit codes: 0 all as it should be; 1 a failure; 77 skipped: mpirun cannot start anything here.
set -u
export LC_ALL=C OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
command -v mpirun >/dev/null || { echo "skipped: no Open MPI (scripts/setup --mpi)"; exit 77; }
train=$(cd "${1:?BIN_DIR, the folder of the tools}" && pwd)/lm-train
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
ranks() { mpirun -q --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np 2 "$@"; }
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

# lines NAME CODE PATTERN ARGUMENT…: the exit code, and exactly one line of ours, which matches.
lines() {
  local name=$1 code=$2 pattern=$3 found=0
  shift 3
  ranks "$train" "$@" 2>said || found=$?
  [ "$found" = "$code" ] || fail "$name: exit code $found, expected $code"
  [ "$(grep -c '^lm-train: ' said)" = 1 ] || fail "$name: $(grep '^lm-train: ' said)"
  grep -q "$pattern" said || fail "$name: $(cat said)"
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
[ $code = 3 ] && [ "$(grep -c '^lm-train: ' said)" = 1 ] && grep -q '^lm-train: none' said ||
  fail "an error of the second process: exit code $code, $(cat said)"
head -n 8 text >other
ranks sh alone text other "$train" 2>said
code=$?
[ $code = 3 ] && [ "$(grep -c '^lm-train: ' said)" = 1 ] && grep -q 'not the same for all' said ||
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

# The second process is killed: both end, the folder has the last checkpoint, and goes on to the same bytes.
o=("${small[@]}" --steps 300 --checkpoint-every 20)
ranks "$train" "${o[@]}" -o undisturbed || fail "a kill: undisturbed"
cat >with_pid <<'END'
echo $$ >"pid.$OMPI_COMM_WORLD_RANK"
exec "$@"
END
rm -f pid.*
ranks sh with_pid "$train" "${o[@]}" -o killed 2>said &
for ((k = 0; k < 300; ++k)); do
  [ -s killed/metrics.jsonl ] && break
  sleep 0.05
done
kill -9 "$(cat pid.1)" || fail "a kill: it ended before"
begin=$SECONDS
wait $!
code=$?
[ $code != 0 ] && [ $((SECONDS - begin)) -le 20 ] || fail "a kill: exit code $code after $((SECONDS - begin)) s"
for ((k = 0; k < 100; ++k)); do kill -0 "$(cat pid.0)" 2>none || break; sleep 0.1; done
[ $k -lt 100 ] || fail "a kill: the first process goes on"
ranks "$train" "${o[@]}" -o killed --resume || fail "a kill: resume"
for file in model.safetensors training.safetensors metrics.jsonl; do
  cmp killed/$file undisturbed/$file || fail "a kill: $file differs from that of an undisturbed run"
done

[ $failures = 0 ] && echo "mpi: all as it should be"
[ $failures = 0 ]
