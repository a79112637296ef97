"""Judge the selections of a launch, and compare judges with people."""
