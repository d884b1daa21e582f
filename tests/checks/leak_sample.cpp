// What avx_leaks.py must find: an inline function, one copy of which serves the whole program, with AVX2 code inside.

__attribute__((target("avx2"), noinline)) inline void add(float* sums, const float* values) {
  typedef float Vector __attribute__((vector_size(32), aligned(4)));
  *reinterpret_cast<Vector*>(sums) += *reinterpret_cast<const Vector*>(values);
}

void call_add(float* sums, const float* values) { add(sums, values); }
