//! Copies of a few bytes that complete later. PTX ISA, "cp.async".

#[rustfmt::skip] // One row per line.
super::forms! { AsyncCopy:
    // op         spelling, as the PTX manual writes it                                   operands                                                                      PTX   target effect
    Copy          "cp.async.ca(.shared|.shared::cta).global{.L2::cache_hint}{<prefetch>}" "[d@shared], [a@global], n:imm(4 8 16){, m:u32(0..16)}, p:u64?L2::cache_hint" "7.0" sm_80 Starts;
    CopyThroughL2 "cp.async.cg(.shared|.shared::cta).global{.L2::cache_hint}{<prefetch>}" "[d@shared], [a@global], n:imm(16){, m:u32(0..16)}, p:u64?L2::cache_hint"     "7.0" sm_80 Starts;
    Commit        "cp.async.commit_group"                                                 ""                                                                            "7.0" sm_80 Starts;
    WaitGroup     "cp.async.wait_group"                                                   "n:imm(0..)"                                                                  "7.0" sm_80 Waits;
    WaitAll       "cp.async.wait_all"                                                     ""                                                                            "7.0" sm_80 Waits;
}
