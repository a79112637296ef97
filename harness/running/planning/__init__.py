"""What a launch would do: its stages, what they cost and how long they take, here or on a cluster."""
