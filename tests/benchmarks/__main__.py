"""`python -m tests.benchmarks`: all benchmarks at full size, on standard output."""

import os
import sys

import pytest

os.environ["BENCHMARK"] = "full"
sys.exit(pytest.main(["-q", "-s", "-p", "no:cacheprovider", "--timeout", "1200", "tests/benchmarks", *sys.argv[1:]]))
