"""What a component is, the roles, and the built-in components; `__init__.pyi` lists what their authors need."""

from harness.core.public_names import public_names

__getattr__, __dir__, __all__ = public_names(__name__)
