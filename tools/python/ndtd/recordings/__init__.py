"""Recordings of drives: opened by what they are, read message by message."""
