#!/usr/bin/env python3
"""Writes map.bin: 256 x 256 cells, each the distance to the nearest of 40 round obstacles, rounded down, at most 255."""
import math
import random

random.seed(7)
obstacles = [(random.uniform(0, 256), random.uniform(0, 256), random.uniform(2, 10)) for _ in range(40)]
obstacles = [o for o in obstacles if math.hypot(o[0] - 128, o[1] - 128) > o[2] + 6]
with open("map.bin", "wb") as file:
    for y in range(256):
        distances = (min(math.hypot(x + 0.5 - ox, y + 0.5 - oy) - r for ox, oy, r in obstacles) for x in range(256))
        file.write(bytes(max(0, min(255, int(d))) for d in distances))
