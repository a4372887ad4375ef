//! Attention: problems, kernels, and the float64 oracle that judges them.
