"""Runs a command and says, as a JSON object, how long it took, its peak resident memory, its exit status and stdout.

Python is what knows `wait4` without unsafe code; its own memory before `exec`, some 10 MiB, is the least that can be
measured.
"""

import json
import os
import subprocess
import sys
import time

began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
stdout = process.stdout.read().decode()
_, status, usage = os.wait4(process.pid, 0)
ms = (time.perf_counter() - began) * 1000
print(json.dumps({"ms": ms, "peak_kib": usage.ru_maxrss, "status": os.waitstatus_to_exitcode(status), "stdout": stdout}))
