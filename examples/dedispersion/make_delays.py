#!/usr/bin/env python3
"""Writes delays.bin: by how many samples each of 1536 channels arrives later than the highest, for a DM of 1 pc/cm^3.

The delay of a frequency f against f_0 is 4148.808 s * DM * (1/f^2 - 1/f_0^2), frequencies in MHz (L. Levin, PhD thesis,
2012, eq. 1.4, and many others); channels begin at 1425 MHz, 0.1953125 MHz apart, samples last 40.96 us.
"""
import array

frequencies = [1425 + 0.1953125 * c for c in range(1536)]
delays = array.array("f", (4148.808 / 40.96e-6 * (f**-2 - frequencies[-1] ** -2) for f in frequencies))
with open("delays.bin", "wb") as file:
    delays.tofile(file)
