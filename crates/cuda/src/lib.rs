//! Kernels on a real GPU, through the driver that is loaded at run time.
