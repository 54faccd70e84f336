#!/usr/bin/env bash
# speed_table.sh BIN SPEED: the table of kernels that scripts/speed makes of `bench kernels`, of a few small cases. Without bench it says so at once.
set -euo pipefail
bin=$1 speed=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/scripts" "$folder/build/bin"
cp "$speed" "$folder/scripts/speed"
code=0
"$folder/scripts/speed" kernels 2>"$folder/err" || code=$?
if [ "$code" != 3 ] || ! grep -q 'no build/bin/bench; run scripts/build' "$folder/err"; then echo "wrong: no bench, exit $code" >&2; exit 1; fi
cat >"$folder/build/bin/bench" <<END
#!/bin/sh
case \$1 in kernels) shift; exec "$bin/bench" kernels --filter softmax "\$@" ;; esac
exec "$bin/bench" "\$@"
END
chmod +x "$folder/build/bin/bench"
set_name=$("$bin/bench" kernels --filter softmax --repeats 1 -j 1 | awk -F'\t' 'NR == 2 { print $2 }')
MASQUE_CPU=$set_name "$folder/scripts/speed" --quick -j 1 kernels >"$folder/table" 2>"$folder/err" ||
  { cat "$folder/err"; exit 1; }

wrong() { echo "wrong: $1" >&2; cat "$folder/table" "$folder/build/speed/speed.jsonl" >&2; exit 1; }
grep -qE "^\| case \| unit \| $set_name \|$" "$folder/table" || wrong "the head of the table"
grep -qE '^\| softmax 16x512 \| GB/s \| [0-9.e+]+ \([0-9]+ %\) \|$' "$folder/table" || wrong "the row of softmax"
grep -qE '^\{"schema":1,"part":"kernels","case":"softmax 16x512".*"set":"'"$set_name"'".*"unit":"GB/s","ours":\{"median":[0-9.e+]+,"min":[0-9.e+]+,"max":[0-9.e+]+\},"peak":' \
  "$folder/build/speed/speed.jsonl" || wrong "the JSON of softmax"
