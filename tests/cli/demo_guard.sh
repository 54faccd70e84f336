#!/usr/bin/env bash
# scripts/demo never removes the model that it is given, however its folder or the checkout is called.
#   tests/cli/demo_guard.sh
# Exit codes: 0 all as it should be; 1 a failure.
set -u
demo=$(cd "$(dirname "$0")/../.." && pwd)/scripts/demo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
mkdir -p checkout/scripts checkout/build/demo/bert elsewhere/demo/bert model
cp "$demo" checkout/scripts/demo
# What the script calls first is there to say that it was called.
for stub in setup build; do printf '#!/bin/sh\nexit 9\n' >checkout/scripts/$stub && chmod +x checkout/scripts/$stub; done
ln -s checkout link
cp -r checkout linked && rm -r linked/build && ln -s ../elsewhere linked/build
ln -s "$work/checkout/build/demo/bert" alias

# expect CODE FOLDER MODEL: the exit code of the script, called in FOLDER.
expect() {
  local folder
  local code=0
  (cd "$2" && scripts/demo --model "$3" >out 2>err) || code=$?
  [ $code = "$1" ] || { echo "in $2, --model $3: exit $code, expected $1: $(cat "$2/err")" && failures=$((failures + 1)); }
  for folder in checkout/build/demo/bert elsewhere/demo/bert model; do
    [ -d $folder ] || { echo "in $2, --model $3: $folder is gone" && failures=$((failures + 1)) && mkdir -p $folder; }
  done
}
for folder in checkout link; do
  for model in build/demo/bert build/demo ./build/../build/demo/bert "$work/checkout/build/demo/bert" "$work/link/build/demo/bert" ../alias; do
    expect 2 $folder "$model"
  done
  expect 9 $folder ../model
done
for model in build/demo/bert ../elsewhere/demo/bert; do expect 2 linked $model; done
expect 2 checkout build
[ $failures = 0 ]
