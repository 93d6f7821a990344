// The plain loop that every version is verified against.
void vector_add_reference(int count, const float* a, const float* b, float* c) {
  for (int i = 0; i < count; ++i) c[i] = a[i] + b[i];
}
