"""What is wrong with a data set, and its repair."""

from harness.checks.checking import check_dataset
from harness.checks.findings import CODES, Finding
from harness.checks.fixing import Fixed, fix_dataset

__all__ = ["CODES", "Finding", "Fixed", "check_dataset", "fix_dataset"]
