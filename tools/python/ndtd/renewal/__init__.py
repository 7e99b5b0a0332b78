"""Renewal of a map: recordings of later drives vote about what has changed, and an overlay beside the map keeps it, with proof."""
