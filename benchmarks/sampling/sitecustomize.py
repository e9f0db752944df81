"""Says where a Python process spends its CPU time. Imported at the start by whoever has this folder in PYTHONPATH.

A thread looks at the stacks of all others every few milliseconds, and gives the CPU time that each has used since to
the function it is in. Four times a second the sums are written to the folder named by BENCH_SAMPLES: processes are
killed when they have been measured.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

EVERY_S = 0.004
#: So short that a thread is seen where it works, and not where it lets go by itself: in the loop that waits.
SWITCH_S = 0.0001
WRITE_S = 0.25


def sample(path: Path) -> None:
    """Runs for ever."""
    spent: defaultdict[str, float] = defaultdict(float)
    used: dict[int, float] = {}
    own = threading.get_ident()
    written = time.monotonic()
    while True:
        time.sleep(EVERY_S)
        for ident, frame in sys._current_frames().items():
            if ident == own:
                continue
            try:
                now = time.clock_gettime(time.pthread_getcpuclockid(ident))
            except OSError:  # it ended just now
                continue
            spent[f"{frame.f_globals.get('__name__', '?')}:{frame.f_code.co_name}"] += now - used.get(ident, now)
            used[ident] = now
        if time.monotonic() - written > WRITE_S:
            fresh = path.with_suffix(".new")
            fresh.write_text(json.dumps(spent))
            fresh.replace(path)
            written = time.monotonic()


if "BENCH_SAMPLES" in os.environ:
    target = Path(os.environ["BENCH_SAMPLES"]) / f"samples-{os.getpid()}.json"
    sys.setswitchinterval(SWITCH_S)
    threading.Thread(target=sample, args=(target,), daemon=True).start()
