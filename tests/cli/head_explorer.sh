#!/bin/sh
# The page of attn-probe map in a browser: it says the weight that a link points to.
# Skipped (77) where there is no Chromium.  head_explorer.sh BIN DATA
set -eu
bin=$1 data=$2
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
  echo 'skipped: no Chromium (scripts/setup --browser)'
  exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '{"ids":[2,5,7,9,11,13,3]}\n' > "$folder/records.jsonl"
"$bin/attn-probe" map "$data/model/bert" --records "$folder/records.jsonl" -q -o "$folder/page.html"
"$bin/attn-probe" map "$data/model/bert" --records "$folder/records.jsonl" -q --layer 1 --head 1 \
  -o "$folder/head.npy"
# Element (4, 2) of a 7 × 7 matrix of f32 after a header of 128 bytes.
expected=$(od -An -tf4 -j $((128 + 4 * (4 * 7 + 2))) -N4 "$folder/head.npy" | tr -d ' ')
said=$(timeout 60 "$browser" --headless --no-sandbox --disable-gpu --virtual-time-budget=5000 \
  --user-data-dir="$folder/profile" --dump-dom \
  "file://$folder/page.html#layer=1&head=1&query=4&key=2" 2> /dev/null |
  sed -n 's/.*layer 1, head 1: query 4 “11” → key 2 “7”: \([0-9.]*\).*/\1/p' | head -n 1)
echo "page: $said, array: $expected"
awk -v a="$said" -v b="$expected" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && d <= 1 / 255) }'
