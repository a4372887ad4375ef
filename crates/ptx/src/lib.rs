//! PTX as data: the instruction table, a parser, a typed IR, a printer and a verifier.
