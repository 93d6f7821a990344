// What distance_map.cl is verified against.
void distance_map_reference(const unsigned char* map, const int* directions, int* lengths) {
  for (int ray = 0; ray < RAYS; ++ray) {
    long x = (SIDE / 2) * 65536L, y = x;
    lengths[ray] = 0;
    for (int step = 0; step < MOST_STEPS; ++step) {
      if (x < 0 || y < 0 || x >= SIDE * 65536L || y >= SIDE * 65536L) break;
      const int distance = map[y / 65536 * SIDE + x / 65536];
      if (distance < 1) break;
      x += (long)distance * directions[2 * ray];
      y += (long)distance * directions[2 * ray + 1];
      lengths[ray] += distance;
    }
  }
}
