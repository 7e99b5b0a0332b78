"""Replays of a whole fleet: `ndt-fleet`.

    plan         bags (urls by fsspec) x configurations; bags and configurations have hashes of their content
    workers      task.py, one process per core, on an engine that exists (Dask): stage, index, replay, write one file
    run folder   run_folder.py: files that are written whole; what is there is done and never done again
    result       scans.parquet, runs.parquet, `ndt-fleet report`

docs/fleet.md is the manual.
"""
