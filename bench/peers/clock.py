"""Times of calls on the GPU, measured as those of the other peers are: graphs with an event at each end, in microseconds."""
import json
import statistics
import sys

import torch

BACK_TO_BACK_BELOW = 60
COPIES = 20


def read_cases():
    """What the file that is named first asks for; which PyTorch answers is said before anything else."""
    with open(sys.argv[1]) as f:
        found = json.load(f)
    print(f"PyTorch {torch.__version__}", flush=True)
    return [dict(case, quick=found["quick"]) for case in found["cases"]]


class Clock:
    """Times graphs of calls, in microseconds."""

    def __init__(self):
        self.scratch = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
        self.inside = True
        try:
            self.time(self.graph(lambda: self.scratch[:256].zero_()), 2)
        except Exception as error:  # Events in graphs need a recent PyTorch.
            self.inside = False
            print(f"events are recorded around graphs, not in them: {str(error).strip().splitlines()[0]}", flush=True)

    def graph(self, call, copies=1):
        """`copies` calls between two events, recorded."""
        call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        external = dict(external=True) if self.inside else {}
        start, end = (torch.cuda.Event(enable_timing=True, **external) for _ in range(2))
        with torch.cuda.graph(graph):
            if self.inside:
                start.record()
            for _ in range(copies):
                call()
            if self.inside:
                end.record()
        return graph, start, end, copies

    def time(self, recorded, repeats, warm_ups=10, flush=False):
        """The median of replays, for one call."""
        graph, start, end, copies = recorded
        for _ in range(warm_ups):
            graph.replay()
        times = []
        for _ in range(repeats):
            # Without events of its own the replay waits behind this, so that the host is ahead.
            if flush or not self.inside:
                self.scratch.zero_()
            if not self.inside:
                if not flush:
                    graph.replay()
                start.record()
            graph.replay()
            if not self.inside:
                end.record()
            torch.cuda.synchronize()
            times.append(1000 * start.elapsed_time(end) / copies)
        return statistics.median(times)

    def measure(self, call, recorded=True):
        if not recorded:
            return self.measure_calls(call)
        graph = self.graph(call)
        event = self.time(graph, 50)
        flushed = self.time(graph, 25, 3, True)
        back = self.time(self.graph(call, COPIES), 30, 1) if event < BACK_TO_BACK_BELOW else None
        return dict(event=event, flushed=flushed, backToBack=back, repeats=50)

    def time_calls(self, call, repeats, warm_ups, flush=False):
        """The median of calls between two events each, the host's time included."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        times = []
        for k in range(warm_ups + repeats):
            if flush:
                self.scratch.zero_()
            start.record()
            call()
            end.record()
            torch.cuda.synchronize()
            if k >= warm_ups:
                times.append(1000 * start.elapsed_time(end))
        return statistics.median(times)

    def measure_calls(self, call):
        """Of what cannot be recorded, because the host waits in it."""
        event = self.time_calls(call, 30, 5)
        return dict(event=event, flushed=self.time_calls(call, 10, 2, True), backToBack=None, repeats=30)


def tuned(clock, calls, recorded=True):
    """The fastest of the calls that run: its name, itself, how many did."""
    best, tried, failed = None, 0, ""
    for name, call in calls:
        tried += 1
        try:
            us = clock.time(clock.graph(call), 10, 3) if recorded else clock.time_calls(call, 5, 2)
        except Exception as error:  # Out of shared memory, mostly.
            failed = str(error).strip().split("\n")[0][:160]
            continue
        if best is None or us < best[0]:
            best = (us, name, call)
    if best is None:
        raise RuntimeError(f"none of {tried} configurations ran: {failed}")
    return best[1], best[2], tried


def checked(result, call, check, measure):
    """Measured where every element is right, which is returned; `check(call)` says that, and the worst error."""
    ok, result["error"] = check(call)
    if ok:
        result["times"] = measure(call)
    return ok


def print_fastest(clock, case, name, calls, check, recorded=True):
    """The line of JSON for the fastest of what `calls()` gives, checked and measured, in a graph where it is `recorded`."""

    def measured(result):
        config, call, tried = tuned(clock, calls(), recorded)
        result["facts"] = dict(configuration=config, tried=tried)
        return checked(result, call, check, lambda call: clock.measure(call, recorded))

    print_result(case, name, measured)
    torch.cuda.empty_cache()


def print_both(clock, case, name, calls, check, ways=(True, False)):
    """The fastest recorded, and the fastest of those that are called."""
    for recorded in ways:
        print_fastest(clock, case, f"{name}, {'recorded' if recorded else 'as calls'}", calls, check, recorded)


def print_result(case, name, measured):
    """A line of JSON; `measured` puts into the result what it finds, and says whether every element is right."""
    result = dict(id=case["id"], name=name, note="", error=None, times=None)
    try:
        ok = measured(result)
        result["result"] = "ok" if ok else "wrong"
        result["note"] = "" if ok else "elements are not within rounding of float64"
    except Exception as error:
        result["result"] = "failed"
        result["note"] = str(error).strip().split("\n")[0][:300]
    print(json.dumps(result), flush=True)
