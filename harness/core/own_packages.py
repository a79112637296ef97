"""The packages that are installed next to `harness`: their names are common, and another package may hide them."""

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from harness.core.errors import ConfigError

OWN_PACKAGES = ("harness", "judges", "reports")
HOME = Path(__file__).resolve().parents[2]
"""The folder that contains them."""


def is_built_in(component: object) -> bool:
    """Whether a component is the harness's own, not a researcher's."""
    return type(component).__module__.partition(".")[0] in OWN_PACKAGES


@lru_cache(maxsize=1)
def require_own_packages() -> None:
    """Raises ConfigError if `judges` or `reports` would be imported from a folder that does not contain `harness`."""
    for name in OWN_PACKAGES[1:]:
        spec = find_spec(name)
        places = list(spec.submodule_search_locations or [str(spec.origin)]) if spec else []
        if not any(Path(place).resolve() == HOME / name for place in places):
            where = places[0] if places else "nowhere"
            raise ConfigError(
                f"{where}: this package '{name}' hides the one of the harness in {HOME}; rename its folder or "
                "uninstall it, or start Python with -P, which leaves the script's folder out of the search path"
            )
