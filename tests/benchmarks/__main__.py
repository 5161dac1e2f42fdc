"""`python -m tests.benchmarks`: all benchmarks at full size, on standard output, and what they ran on."""

import datetime as dt
import os
import platform
import sys

import pytest

os.environ["BENCHMARK"] = "full"
load = os.getloadavg()[0]
print(f"{dt.date.today()}, {os.cpu_count()} CPUs, {platform.system()} {platform.machine()}, load before: {load:.1f}")
sys.exit(pytest.main(["-q", "-s", "-p", "no:cacheprovider", "--timeout", "1200", "tests/benchmarks", *sys.argv[1:]]))
