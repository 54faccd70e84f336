// Sets what --rate says.
const char* found() {
  return "the \"--hidden-size\" of "
         "(--{})";
}
