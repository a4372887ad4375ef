//! Copies that complete later. PTX ISA, "cp.async", "cp.async.bulk.tensor".

#[rustfmt::skip] // One row per line.
super::forms! { AsyncCopy:
    // op            spelling, as the PTX manual writes it                                              operands                                  PTX   target effect
    Copy             "cp.async.ca(.shared|.shared::cta).global{.L2::64B|.L2::128B|.L2::256B}"            "[d@shared], [a@global], n:imm(4 8 16){, m:u32(0..16)}"  "7.0" sm_80  Starts;
    CopyThroughL2    "cp.async.cg(.shared|.shared::cta).global{.L2::64B|.L2::128B|.L2::256B}"            "[d@shared], [a@global], n:imm(16){, m:u32(0..16)}"      "7.0" sm_80  Starts;
    Commit           "cp.async.commit_group"                                                             ""                                        "7.0" sm_80  Starts;
    WaitGroup        "cp.async.wait_group"                                                               "n:imm(0..)"                              "7.0" sm_80  Waits;
    WaitAll          "cp.async.wait_all"                                                                 ""                                        "7.0" sm_80  Waits;
    TensorLoad       "cp.async.bulk.tensor(.1d|.2d|.3d|.4d|.5d){.tile}.shared::cluster.global.mbarrier::complete_tx::bytes" "[d@shared], [a, c:s32[D]], [m@shared]" "8.0" sm_90 Starts;
}
