"""Reports of replays: reads what `ndtd --replay ... --output FOLDER` writes, draws it, makes one HTML file of it."""
