"""Times of launches in turns, in four states of the GPU: after a rest or after half a second of work, with the L2 cache flushed or as the launch
before has left it. Which of two configurations is faster may depend on it."""

import statistics
import time


def times_by_state(calls):
    """For each state its name and the median time of each call, s."""
    import torch
    import triton.testing

    def kept(call):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        call()
        marks[0].record()
        for _ in range(200):
            call()
        marks[1].record()
        torch.cuda.synchronize()
        return 1e-3 * marks[0].elapsed_time(marks[1]) / 200

    def flushed(call):
        return 1e-3 * triton.testing.do_bench(call, warmup=25, rep=100, return_mode="median")

    for busy in (False, True):
        for how in (flushed, kept):
            times = [[] for _ in calls]
            for turn in range(4):
                for call, found in list(zip(calls, times))[:: -1 if turn % 2 else 1]:
                    until = time.perf_counter() + 0.5
                    while busy and time.perf_counter() < until:
                        kept(call)
                    time.sleep(max(0, until - time.perf_counter()))
                    found.append(how(call))
            yield f"{'busy' if busy else 'rested'}, L2 {how.__name__}", [statistics.median(found) for found in times]
