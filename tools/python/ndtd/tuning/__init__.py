"""Settings of the matcher for a sensor and a place, tried on recordings: replays (trial) and what they show (choice)."""
