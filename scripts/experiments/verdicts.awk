# Judges the claims of an experiment by its values.
#   awk -F '\t' -v experiment=NAME -f verdicts.awk claims.tsv NAME/values.tsv
# claims.tsv: experiment, claim, measure, first, second, kind, least, learned, stated, published (README.md explains them).
# values.tsv: condition, seed, measure, value.
# Prints claim, measure, first, second, seeds, difference, low, high, verdict, stated, published: the mean over seeds of first − second with its
# 95 % interval (Student's t of the paired differences).
BEGIN {
  OFS = "\t"
  # Quantiles of 0.975 for 1, 2, … degrees of freedom.
  quantiles = split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131", quantile, " ")
  print "claim", "measure", "first", "second", "seeds", "difference", "low", "high", "verdict", "stated", "published"
}
FNR == 1 { ++file; next }
file == 1 { if ($1 == experiment) { claim[++claims] = $0 } next }
{ value[$1, $3, $2] = $4; if (!($2 in known)) { known[$2]; seed[++seeds] = $2 } }
# nan and inf are none.
function is_number(text) { return text ~ /^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$/ }
function of(condition, measure, s) { return is_number(condition) ? condition : value[condition, measure, s] }
function has(condition, measure, s) { return is_number(condition) || ((condition, measure, s) in value && is_number(value[condition, measure, s])) }
# Rules separated by ";": "condition measure > number" or "<", of every seed; "both" and "either" stand for the two conditions of
# the claim. "-" always holds.
function has_learned(rules, first, second,    rule, k, n, part, rest) {
  if (rules == "-") return 1
  n = split(rules, rule, / *; */)
  for (k = 1; k <= n; ++k) {
    split(rule[k], part, " ")
    rest = part[2] " " part[3] " " part[4]
    if (part[1] == "both" && !((is_number(first) || holds(first " " rest)) && (is_number(second) || holds(second " " rest)))) return 0
    if (part[1] == "either" && !(!is_number(first) && holds(first " " rest) || !is_number(second) && holds(second " " rest))) return 0
    if (part[1] != "both" && part[1] != "either" && !holds(rule[k])) return 0
  }
  return 1
}
function holds(rule,    part, s, n, v) {
  split(rule, part, " ")
  for (s = 1; s <= seeds; ++s) if (has(part[1], part[2], seed[s])) {
    ++n; v = of(part[1], part[2], seed[s])
    if (part[3] == ">" ? v <= part[4] : v >= part[4]) return 0
  }
  return n
}
# Whether a value was measured and is no number.
function is_broken(condition, measure, s) { return !has(condition, measure, s) && (condition, measure, s) in value }
function verdict(kind, least, learned, n, broken, mean, half, agreeing, first, second,    low, high) {
  if (n == 0) return broken ? "not finite" : "not run"
  if (n == 1) return "one seed, no verdict"
  if (broken) return "not finite"
  if (!has_learned(learned, first, second)) return "not learned"
  low = mean - half; high = mean + half
  if (kind == "same") {
    if (low >= -least && high <= least) return "reproduced"
    if (low > least || high < -least) return "contradicted"
    return mean >= -least && mean <= least ? "direction only" : "not visible at this scale"
  }
  if (kind == "not_more") {
    if (high <= least) return "reproduced"
    if (low > least) return "contradicted"
    return mean <= least ? "direction only" : "not visible at this scale"
  }
  if (low > 0) return mean >= least ? "reproduced" : "direction only"
  if (high < 0) return "contradicted"
  return agreeing == n ? "direction only" : "not visible at this scale"
}
END {
  for (c = 1; c <= claims; ++c) {
    split(claim[c], f, "\t")
    n = broken = sum = squares = agreeing = 0
    sign = f[6] == "less" ? -1 : 1
    for (s = 1; s <= seeds; ++s) {
      broken += is_broken(f[4], f[3], seed[s]) || is_broken(f[5], f[3], seed[s])
      if (!has(f[4], f[3], seed[s]) || !has(f[5], f[3], seed[s])) continue
      d = of(f[4], f[3], seed[s]) - of(f[5], f[3], seed[s])
      ++n; sum += d; squares += d * d; agreeing += sign * d > 0
    }
    mean = n ? sum / n : 0
    v = n > 1 ? (squares - sum * sum / n) / (n - 1) : 0
    half = n > 1 ? quantile[n - 1 < quantiles ? n - 1 : quantiles] * sqrt((v > 0 ? v : 0) / n) : 0
    line = f[2] OFS f[3] OFS f[4] OFS f[5] OFS n OFS (n ? sprintf("%.4g", mean) : "-")
    line = line OFS (n > 1 ? sprintf("%.4g", mean - half) OFS sprintf("%.4g", mean + half) : "-" OFS "-")
    print line OFS verdict(f[6], f[7], f[8], n, broken, sign * mean, half, agreeing, f[4], f[5]) OFS f[9] OFS f[10]
  }
}
