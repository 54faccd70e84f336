const char* found() { return "--rate"; }
