void f() { std::cerr << "x"; }
