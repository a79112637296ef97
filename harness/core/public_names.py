"""Public names of a package, each loaded when it is first used, so that start-up stays light.

The names are those that the package's `__init__.py` imports under `if TYPE_CHECKING:`, the one list for readers, type
checkers and this module.
"""

import ast
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any


def public_names(
    package: str, moved: Mapping[str, str] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package that lists its public names as described above.

    `moved` maps each former name to its replacement, which the ImportError for that name recommends.
    """
    module = import_module(package)
    source = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    listed = (node for node in source.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = (node for block in listed for node in block.body if isinstance(node, ast.ImportFrom))
    homes = {alias.name: str(node.module) for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name not in homes:
            if name in moved:
                # No AttributeError: `from package import name` would drop its message.
                raise ImportError(f"{package} no longer has '{name}'; write `{moved[name]}`", name=package)
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        value = getattr(import_module(homes[name]), name)
        setattr(module, name, value)
        return value

    return load, lambda: sorted(homes), sorted(homes)
