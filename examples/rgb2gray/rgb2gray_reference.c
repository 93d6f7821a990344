// What rgb2gray.cl is verified against.
void rgb2gray_reference(const float* red, const float* green, const float* blue, float* gray) {
  for (long i = 0; i < (long)WIDTH * HEIGHT; ++i) gray[i] = 0.299f * red[i] + 0.587f * green[i] + 0.114f * blue[i];
}
