"""Maps of other tools: point files in blocks, tiles as Autoware has them."""
from .point_files import Block, MapFileError, PointFile, find_files
from .tiles import TileSet

__all__ = ["Block", "MapFileError", "PointFile", "TileSet", "find_files"]
