# Draws curves as SVG: for each series means over its runs, a bar of one deviation (of a sample) up and down, the runs as dots.
#   awk -F '\t' -v title=TEXT [-v axis=steps] -f curves.awk TABLE >curves.svg
# TABLE has a line of names, then series, x, value. The axis of x is logarithmic if the largest x is at least 8 times the smallest.
function x(at) {
  if (last <= first) return 240
  return 60 + (log_x ? (log(at) - log(first)) / (log(last) - log(first)) : (at - first) / (last - first)) * 360
}
function y(value) { return 270 - (value - bottom) / (top - bottom) * 240 }
FNR == 1 { next }
{
  if (!($1 in order)) { order[$1] = ++series; name[series] = $1 }
  key = $1 SUBSEP $2
  if (!(key in count)) points[$1] = points[$1] " " $2
  ++count[key]; sum[key] += $3; squares[key] += $3 * $3
  dot[++dots] = $1 "\t" $2 "\t" $3
  if (dots == 1 || $2 < first) first = $2
  if (dots == 1 || $2 > last) last = $2
  if (dots == 1 || $3 < bottom) bottom = $3
  if (dots == 1 || $3 > top) top = $3
  if (!($2 in tick)) { tick[$2]; at[++ticks] = $2 }
}
END {
  lowest = bottom
  log_x = first > 0 && last >= 8 * first
  split("#d55e00 #0072b2 #009e73 #cc79a7 #e69f00 #56b4e9 #000000", color, " ")
  for (key in count) {
    mean[key] = sum[key] / count[key]
    v = count[key] > 1 ? (squares[key] - count[key] * mean[key] ^ 2) / (count[key] - 1) : 0
    sd[key] = v > 0 ? sqrt(v) : 0
    if (mean[key] + sd[key] > top) top = mean[key] + sd[key]
    if (mean[key] - sd[key] < bottom) bottom = mean[key] - sd[key]
  }
  if (bottom < 0 && lowest >= 0) bottom = 0
  if (top <= bottom) top = bottom + 1
  # Of more than seven series the next ones have other lines in the same colours.
  split("5 3|1.5 3|9 3 2 3", dash, "|")
  split(" (dashed)| (dotted)| (dash-dot)", line, "|")
  width = 520
  for (s = 1; s <= series; ++s) {
    kind[s] = int((s - 1) / 7)
    label[s] = name[s] line[kind[s]]
    if (430 + 7 * length(label[s]) > width) width = 430 + 7 * length(label[s])
  }
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d 320\" font-family=\"sans-serif\" font-size=\"12\">\n", width
  printf "<rect width=\"%d\" height=\"320\" fill=\"white\"/>\n", width
  for (t = 0; t <= 4; ++t) {
    value = bottom + (top - bottom) * t / 4
    printf "<line x1=\"60\" x2=\"420\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"54\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n", y(value), y(value), y(value) + 4, value
  }
  # Names of the axis that have room.
  for (t = 2; t <= ticks; ++t) for (u = t; u > 1 && at[u] + 0 < at[u - 1] + 0; --u) { swap = at[u]; at[u] = at[u - 1]; at[u - 1] = swap }
  before = -100
  for (t = 1; t <= ticks; ++t) {
    if (x(at[t]) - before < 34) continue
    before = x(at[t])
    printf "<text x=\"%.1f\" y=\"288\" text-anchor=\"middle\">%s</text>\n", before, at[t]
  }
  for (k = 1; k <= dots; ++k) {
    split(dot[k], f, "\t")
    printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\" fill=\"%s\"/>\n", x(f[2]), y(f[3]), color[(order[f[1]] - 1) % 7 + 1]
  }
  for (s = 1; s <= series; ++s) {
    n = split(points[name[s]], place, " ")
    path = ""
    for (k = 1; k <= n; ++k) {
      key = name[s] SUBSEP place[k]
      path = path sprintf("%s%.1f %.1f", k == 1 ? "M" : " L", x(place[k]), y(mean[key]))
      printf "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x(place[k]), x(place[k]), \
        y(mean[key] - sd[key] > bottom ? mean[key] - sd[key] : bottom), y(mean[key] + sd[key]), color[(s - 1) % 7 + 1]
      end[s] = y(mean[key])
    }
    printf "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"%s/>\n", path, color[(s - 1) % 7 + 1], (kind[s] ? " stroke-dasharray=\"" dash[kind[s]] "\"" : "")
    rank[s] = s
  }
  # Names at the ends of the curves, from top to bottom, none over another.
  for (s = 2; s <= series; ++s) for (u = s; u > 1 && end[rank[u]] < end[rank[u - 1]]; --u) { swap = rank[u]; rank[u] = rank[u - 1]; rank[u - 1] = swap }
  above = 0
  for (s = 1; s <= series; ++s) { if (end[rank[s]] < above + 14) end[rank[s]] = above + 14; above = end[rank[s]] }
  below = 314
  for (s = series; s >= 1; --s) { if (end[rank[s]] > below - 14) end[rank[s]] = below - 14; below = end[rank[s]] }
  for (s = 1; s <= series; ++s) printf "<text x=\"428\" y=\"%.1f\" fill=\"%s\">%s</text>\n", end[s] + 4, color[(s - 1) % 7 + 1], label[s]
  printf "<text x=\"240\" y=\"310\" text-anchor=\"middle\">%s</text><text x=\"60\" y=\"20\">%s</text></svg>\n", axis ? axis : "steps", title
}
