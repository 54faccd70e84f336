# shellcheck shell=bash
# shellcheck disable=SC2154  # out, text and dev are of cells.sh, length and epochs are of the caller
# Made tasks for fine-tuning, and texts for probes. Sourced after cells.sh; needs prepare_text, and length= of the caller.

# pick N: N of the lines of standard input, evenly spread; all if there are fewer.
pick() { awk -v n="$1" '{ line[NR] = $0 } END { if (n > NR) n = NR; for (k = 0; k < n; ++k) print line[int(k * NR / n) + 1] }'; }

# without FILE: the lines of standard input that are not in FILE.
without() { awk 'NR == FNR { seen[$0]; next } !($0 in seen)' "$1" -; }

# order_task N: of N lines of 8 to 40 words, every second one with two neighbouring words exchanged: from the middle on, the first pair in lower
# case and without punctuation.
order_task() {
  awk '
    NF < 8 || NF > 40 { next }
    { $1 = $1; line = $0; i = int(NF / 2)
      while (i < NF && !($i ~ /^[a-z]+$/ && $(i + 1) ~ /^[a-z]+$/ && $i != $(i + 1))) ++i
      if (i < NF) { word = $i; $i = $(i + 1); $(i + 1) = word; print line "\t" $0 } }' |
    pick "$1" | awk -F '\t' '{ print NR % 2 ? $1 "\twritten" : $2 "\texchanged" }'
}

# place_task N: N lines of the first and the last third.
place_task() {
  awk '
    { $1 = $1; line[NR] = $0 }
    END { for (i = 1; i <= NR; ++i) if (line[i] != "" && (3 * i <= NR || 3 * i > 2 * NR)) print line[i] "\t" (3 * i <= NR ? "first" : "last") }' |
    pick "$1"
}

# make_tasks TRAIN TEST: so many lines of text, tab, label for training and for the test of each task, in $out/tasks. Takes every tenth line and its
# copies out of $text for the test of place; the test of order is of $dev. No test line is in $text.
make_tasks() {
  local part=$out/tasks.part
  if [ ! -e "$out/tasks" ]; then
    mkdir -p "$part"
    awk 'NR % 10 == 0' "$text" >"$part/held.txt"
    awk 'NR % 10' "$text" | without "$part/held.txt" >"$part/text.txt"
    order_task "$1" <"$part/text.txt" >"$part/order.tsv"
    without "$text" <"$dev" | order_task "$2" >"$part/order-test.tsv"
    place_task "$1" <"$part/text.txt" >"$part/place.tsv"
    place_task "$2" <"$part/held.txt" >"$part/place-test.tsv"
    mv "$part" "$out/tasks"
  fi
  text=$out/tasks/text.txt
}

# Those that fine_tune trains on; a caller may add one with files NAME.tsv and NAME-test.tsv.
tasks=(order place)

# fine_tune MODEL SEED OPTION...: trains the model on each task for epochs= of the caller, or 5; prints its accuracies on test lines and their mean.
# With times= of the caller the times of the steps are in the files $times-TASK.
fine_tune() {
  local task
  for task in "${tasks[@]}"; do
    [ -z "${times:-}" ] || rm -f "$times-$task"
    printf 'accuracy_%s\t' "$task"
    masque lm-train classify "$out/tasks/$task.tsv" --eval-data "$out/tasks/$task-test.tsv" --model "$1" \
      --pooling mean --length "$length" --epochs "${epochs:-5}" --learning-rate 0.0005 --seed "$2" --no-header -q ${times:+--timing "$times-$task"} "${@:3}" | cut -f 5
  done | awk -F '\t' '{ print; sum += $2 } END { printf "accuracy_mean\t%.6g\n", sum / NR }'
}

# make_probe N: N lines of $dev that fit into a model's length, in $out/probe.txt.
make_probe() {
  [ ! -e "$out/probe.txt" ] || return 0
  tok encode "$out/tok" --special <"$dev" >"$out/probe.ids"
  awk -v most="$length" 'NR == FNR { fits[FNR] = NF > 2 && NF <= most; next } fits[FNR]' "$out/probe.ids" "$dev" | pick "$1" >"$out/probe.part"
  mv "$out/probe.part" "$out/probe.txt"
}
