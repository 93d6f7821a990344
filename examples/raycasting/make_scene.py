#!/usr/bin/env python3
"""Writes scene.bin: 64 spheres as float32 (x, y, z, radius), the scene that raycasting.toml renders."""
import random
import struct

random.seed(12)
with open("scene.bin", "wb") as out:
    for _ in range(64):
        radius = random.uniform(0.4, 1.2)
        out.write(struct.pack("<4f", random.uniform(-9, 9), radius + random.uniform(0, 2.5), random.uniform(-4, 16), radius))
