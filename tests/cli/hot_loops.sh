#!/usr/bin/env bash
# The innermost loops of hot functions keep no vectors on the stack: a compiler that lowers vectors through it makes
# them ten times slower, and nothing else shows that.
#   hot_loops.sh OBJDUMP ARCHIVE…
set -euo pipefail
objdump=$1
shift
case $(uname -m) in x86_64) ;; *) exit 77 ;; esac
command -v "$objdump" >/dev/null || exit 77
# A sanitizer's checks stand in every loop.
! grep -q -e __asan_init -e __tsan_init "$1" || exit 77
# Without optimisation everything is on the stack.
[ "$("$objdump" -d --no-show-raw-insn "$1" | grep -c vfmadd)" -gt 0 ] || exit 77
# An innermost loop: from the target of a backward jump to the jump, with no other such jump inside.
"$objdump" -d -C --no-show-raw-insn "$@" | awk '
  # Every function that is compiled for an instruction set, and the SSE2 variants of plain loops.
  function hot(name) {
    if (name ~ /Eigen::/) return 0
    return name ~ /N_(AVX2|AVX3|SSE2|SSE4|SCALAR)::|on_avx(2|512)<|nn::tile::\(anonymous namespace\)::(row_to_pairs|rows_to_pairs|pack_strip)\(|kernel::(finish_row|activate_row|add_slope_row|multiply_slope_row|add_gate_row|exp_sum|exp_below|softmax_row|softmax_row_backward|adamw_run|lamb_run|lamb_moments|squares|scale_run|track_largest|rescale_factors|add_rescaled|turn_row|multiply_row|scale_columns|drop_row)\(/
  }
  # What a function is excused from, and why.
  function excused(name) {
    # Sums of five kinds over groups of 64 bytes, four vectors each: more than sixteen registers of 16 bytes.
    if (name ~ /evaluate::N_(SSE2|SSE4|SCALAR)::sum_(rows|spreads)_loop/) return 1
    # Sixteen sums in double are eight registers of 16 bytes, and their squares the other eight; g++ keeps four there.
    return name ~ /kernel::(squares|lamb_moments)\(float|kernel::lamb_moments\(.*StepFactors<float>|add_squares<float>/ && name !~ /on_avx/
  }
  # Registers of vectors, and not one number of them alone.
  function of_vectors(line) {
    if (line !~ /%[xyz]mm[0-9]/ || line ~ /^v?(movd|movq|u?comis[sd]|cvt[a-z0-9]*s[sdi][a-z0-9]*) /) return 0
    return line !~ /^[a-z0-9]+s[sd] /
  }
  # Work on vectors: all but moves, and making zeros.
  function is_work(line) { return of_vectors(line) && line !~ /^v?(mov|p?xor|pxor|zero|broadcast|pbroadcast|extract|insert)/ }
  # %rbp is a pointer like others where it is no frame.
  function on_stack(line) { return line ~ /%[xyz]mm[0-9]/ && (line ~ /\(%rsp/ || (frame && line ~ /\(%rbp/)) }
  function place_of(line) { match(line, /[-0-9a-fx]*\(%r[sb]p[^)]*\)/); return substr(line, RSTART, RLENGTH) }
  function is_store(line) { return line ~ /^v?mov[a-z0-9]+ %[xyz]mm[0-9]+,/ }
  # Of the loop from a line to another: stores to the stack, reads of what it has stored, reads of constants
  # for which there was no register.
  function count_stack(from, to,   j, kept) {
    stores = reloads = constants = 0
    for (j = from; j <= to; ++j) {
      if (on_stack(text[j]) && is_store(text[j])) { ++stores; kept[place_of(text[j])] = 1 }
    }
    for (j = from; j <= to; ++j) {
      if (!on_stack(text[j]) || is_store(text[j])) continue
      if (place_of(text[j]) in kept) ++reloads; else ++constants
    }
  }
  function check_loop(from, to,   n, least, most, few, j, work, moves, calls) {
    work = moves = calls = 0
    for (j = from; j <= to; ++j) {
      if (is_work(text[j])) ++work; else if (of_vectors(text[j])) ++moves
      if (text[j] ~ /^call /) ++calls
    }
    # Only loops over vectors: a rest of a row, or a call to exp in double, may do as it likes. What packs moves,
    # and does nothing else.
    least = name ~ /spread_row|pack|to_pairs/ ? 2 : 4
    if ((name ~ /spread_row/ ? moves : work) < least || calls) return
    ++checked
    count_stack(from, to)
    n = to - from + 1
    # Constants may lie there as they lie in memory elsewhere, unless a loop does little else than read them. A polynomial
    # reads one for each term, and AVX2 has sixteen registers for those of an activation.
    most = name ~ /on_avx2<.*(finish_row|add_slope_row|multiply_slope_row|add_gate_row)_loop/ ? 0.5 : 0.4
    if (constants > n * most) complain(constants " of " n " instructions of an inner loop read constants from the stack")
    if (excused(name)) return
    if (name ~ /AVX|avx|tile::\(anon/) {
      # g++ 14 keeps one number of the loops of exp_sum and of an activation on AVX2 there; nothing else may.
      few = name ~ /on_avx2.*(exp_sum|finish_row)_loop/ ? 1 : 0
      if (stores > few || reloads > few) complain(stores " stores and " reloads " reloads of " n " instructions of an inner loop are of the stack")
    } else if (stores * 16 > n || (stores + reloads) * 8 > n) {
      # Sixteen registers of 16 bytes are few: there one instruction in sixteen may store, and another read that.
      complain(stores " stores and " reloads " reloads of " n " instructions of an inner loop are of the stack")
    }
  }
  function complain(what) { print name ": " what; ++bad }
  function finish(   i, j, target, inner) {
    if (name == "" || !hot(name)) return
    ++functions
    for (k = 1; k <= kinds; ++k) if (name ~ kind[k]) ++seen[k]
    frame = 0
    for (i = 1; i <= lines; ++i) if (text[i] == "mov %rsp,%rbp") frame = 1
    for (i = 1; i <= lines; ++i) {
      if (text[i] !~ /^j[a-z]+ / || text[i] ~ /^jmp /) continue  # a loop ends with a condition
      split(text[i], word, " ")
      target = place[word[2]]
      if (target == "" || target > i) continue
      inner = 1
      for (j = target; j < i; ++j) if (loops[j] && loops[j] >= target) inner = 0
      loops[i] = target
      if (inner) check_loop(target, i)
    }
  }
  # Each of these is there: else a name has changed.
  BEGIN {
    kinds = split("multiply_strips multiply_edge Pairs transpose_strip pair_rows spread_row to_pairs pack_strip adamw lamb moments add_squares multiply_run " \
      "track_largest rescale_factors add_rescaled rotate_adjacent rotate_half norm_row sum_of_row largest_of_row hide_loop exp_shifted exp_floats gradients_floats softmax_row exp_sum " \
      "drop_floats activate_row finish_row add_gate_row sum_rows N_(SSE2|SCALAR)::multiply_strips", kind, " ")
  }
  /^[0-9a-f]+ <.*>:$/ {
    finish()
    name = $0; sub(/^[0-9a-f]+ </, "", name); sub(/>:$/, "", name)
    lines = 0; delete text; delete place; delete loops
    next
  }
  /^ +[0-9a-f]+:/ {
    ++lines
    address = $1; sub(/:$/, "", address)
    place[address] = lines
    line = $0; sub(/^ +[0-9a-f]+:[ \t]+/, "", line); gsub(/[ \t]+/, " ", line)
    text[lines] = line
  }
  END {
    finish()
    printf "%d hot functions, %d inner loops looked at\n", functions, checked
    if (functions < 100 || checked < 200) { print "too few: their names have changed"; exit 1 }
    for (k = 1; k <= kinds; ++k) if (!seen[k]) { print "no function " kind[k] ": its name has changed"; ++bad }
    exit bad > 0
  }'
