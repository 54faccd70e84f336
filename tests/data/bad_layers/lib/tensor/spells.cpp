// Sets what --rate says.
const char* found() {
  return "the \"--hidden-size\" of "
         "(--{})";
}
const char* written() { return "-o {}: expected no file"; }
