void f() { printf("x"); }
