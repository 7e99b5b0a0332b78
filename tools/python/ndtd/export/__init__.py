"""Results of ndtd in the formats of other tools; the command is ndt-export."""
from .result_lines import ResultError, ResultLine, read_results

__all__ = ["ResultError", "ResultLine", "read_results"]
