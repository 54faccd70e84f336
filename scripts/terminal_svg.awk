# Draws lines of text as SVG, as on a terminal; lines that begin with $ are bold. awk -f terminal_svg.awk TEXT >picture.svg
function escaped(text) {
  gsub(/&/, "\\&amp;", text)
  gsub(/</, "\\&lt;", text)
  gsub(/>/, "\\&gt;", text)
  gsub(/ /, "\\&#160;", text)
  return text
}
{ line[NR] = $0; if (length($0) > widest) widest = length($0) }
END {
  width = widest * 7.3 + 24
  height = NR * 17 + 22
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", width, height, width, height
  printf "<rect x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"#ffffff\" stroke=\"#c8ccd2\"/>\n", width - 1, height - 1
  print "<g font-family=\"ui-monospace,DejaVu Sans Mono,Menlo,monospace\" font-size=\"12\" fill=\"#24292f\">"
  for (i = 1; i <= NR; ++i)
    printf "<text x=\"12\" y=\"%d\"%s>%s</text>\n", i * 17 + 8, line[i] ~ /^\$ / ? " font-weight=\"bold\"" : "", escaped(line[i])
  print "</g>\n</svg>"
}
