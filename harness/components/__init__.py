"""What a component is, the roles, and the built-in components."""
