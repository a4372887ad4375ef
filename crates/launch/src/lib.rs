//! The recipe: a kernel is a PTX module and how to launch it.
