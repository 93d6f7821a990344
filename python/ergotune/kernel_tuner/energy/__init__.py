"""The power-frequency model, as Kernel Tuner's scripts use it."""
