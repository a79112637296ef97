"""`run` as users call it: a launch that is logged with its report."""

from typing import Unpack

from harness.experiment.experiment import Experiment
from harness.running import launch
from harness.running.launch import RunOptions
from harness.running.launch_result import Launch
from reports.launch_files import launch_report


def run(experiment: Experiment, **options: Unpack[RunOptions]) -> Launch:
    """Computes every trial of an experiment, logs it with a report, and returns the launch.

    This is what `harness run` does; see `RunOptions`. With `report=None` the launch is logged without a report. If a
    run is killed, the next one resumes where it stopped. Raises HarnessError for every problem that the user can fix.
    """
    given: RunOptions = {"report": launch_report, **options}
    return launch.run(experiment, **given)
