"""The CUDA backend of ndtd: a module that the programs and the package ndtd of the same version load where there is a driver."""
