"""A map from drives: odometry, submaps, loops, a pose graph, and the cloud that follows. The command is ndt-map build."""
