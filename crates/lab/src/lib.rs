//! From a kernel to evidence: stages, packs, gates and reports.
