"""Checking a data set, and writing a repaired copy."""

from harness.data.checks.check import check_dataset
from harness.data.checks.findings import CODES, Finding
from harness.data.checks.repair import Fixed, fix_dataset

__all__ = ["CODES", "Finding", "Fixed", "check_dataset", "fix_dataset"]
