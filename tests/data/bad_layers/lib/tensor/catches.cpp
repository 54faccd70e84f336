void f() {
  try {
  } catch (...) {
  }
}
