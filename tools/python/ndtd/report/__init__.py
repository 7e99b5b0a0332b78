"""Reports of replays: reads what `ndtd --replay ... --output FOLDER` writes, draws it, makes one HTML file of it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .comparison import Comparison


def compare(first: Any, second: Any, **options: Any) -> "Comparison":
    """Two replays of the same scans (folders, or Run), compared: comparison.compare(), which has margin_m, margin_deg, seed."""
    from . import comparison  # numpy is loaded where it is needed

    return comparison.compare(first, second, **options)
