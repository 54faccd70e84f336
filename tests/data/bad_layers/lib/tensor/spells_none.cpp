// A rule ---- and a dash -- are no options, nor is what i--; means.
int f(int i, const char* s) {
  while (s[i] != '"' && i > 0) --i;
  return s == "a--b |---| --1 --"[0] ? --i : (--i);
}
