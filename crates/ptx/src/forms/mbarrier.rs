//! Barriers in shared memory with phases and transaction counts. PTX ISA, "mbarrier".

#[rustfmt::skip] // One row per line.
super::forms! { Mbarrier:
    // op                spelling, as the PTX manual writes it                                                        operands                           PTX   target effect
    Init                 "mbarrier.init{.shared|.shared::cta}.b64"                                                    "[m], n:u32"                       "7.0" sm_80 Writes;
    Invalidate           "mbarrier.inval{.shared|.shared::cta}.b64"                                                   "[m]"                              "7.0" sm_80 Writes;
    ExpectBytes          "mbarrier.expect_tx{.relaxed}{.cta|.cluster}{.shared|.shared::cta|.shared::cluster}.b64"     "[m], n:u32"                       "8.0" sm_90 Orders;
    CompleteBytes        "mbarrier.complete_tx{.relaxed}{.cta|.cluster}{.shared|.shared::cta|.shared::cluster}.b64"   "[m], n:u32"                       "8.0" sm_90 Orders;
    Arrive               "mbarrier.arrive{.release|.relaxed}{.cta|.cluster}{.shared|.shared::cta}.b64"                "d:u64_, [m]"                      "7.0" sm_80 Orders;
    ArriveCount          "mbarrier.arrive{.release|.relaxed}{.cta|.cluster}{.shared|.shared::cta}.b64"                "d:u64_, [m], n:u32"               "7.8" sm_90 Orders;
    ArriveRemote         "mbarrier.arrive{.release|.relaxed}{.cta|.cluster}.shared::cluster.b64"                      "d:sink, [m]{, n:u32}"             "8.0" sm_90 Orders;
    ArriveExpect         "mbarrier.arrive.expect_tx{.release|.relaxed}{.cta|.cluster}{.shared|.shared::cta}.b64"      "d:u64_, [m], n:u32"               "8.0" sm_90 Orders;
    ArriveExpectRemote   "mbarrier.arrive.expect_tx{.release|.relaxed}{.cta|.cluster}.shared::cluster.b64"            "d:sink, [m], n:u32"               "8.0" sm_90 Orders;
    ArriveNoComplete     "mbarrier.arrive.noComplete{.release}{.cta}{.shared|.shared::cta}.b64"                       "d:u64_, [m], n:u32"               "7.0" sm_80 Orders;
    ArriveDrop           "mbarrier.arrive_drop{.release|.relaxed}{.cta|.cluster}{.shared|.shared::cta}.b64"           "d:u64_, [m]"                      "7.0" sm_80 Orders;
    ArriveDropCount      "mbarrier.arrive_drop{.release|.relaxed}{.cta|.cluster}{.shared|.shared::cta}.b64"           "d:u64_, [m], n:u32"               "7.8" sm_90 Orders;
    ArriveDropRemote     "mbarrier.arrive_drop{.release|.relaxed}{.cta|.cluster}.shared::cluster.b64"                 "d:sink, [m]{, n:u32}"             "8.0" sm_90 Orders;
    ArriveDropExpect     "mbarrier.arrive_drop.expect_tx{.release|.relaxed}{.cta|.cluster}{.shared|.shared::cta}.b64" "d:u64_, [m], n:u32"               "8.0" sm_90 Orders;
    ArriveDropNoComplete "mbarrier.arrive_drop.noComplete{.release}{.cta}{.shared|.shared::cta}.b64"                  "d:u64_, [m], n:u32"               "7.0" sm_80 Orders;
    CopyArrive           "cp.async.mbarrier.arrive{.noinc}{.shared|.shared::cta}.b64"                                 "[m]"                              "7.0" sm_80 Orders;
    TestWait             "mbarrier.test_wait{.acquire|.relaxed}{.cta|.cluster}{.shared|.shared::cta}.b64"             "d:pred, [m], s:u64"               "7.0" sm_80 Waits;
    TestWaitParity       "mbarrier.test_wait.parity{.acquire|.relaxed}{.cta|.cluster}{.shared|.shared::cta}.b64"      "d:pred, [m], a:u32(0 1)"          "7.1" sm_80 Waits;
    TryWait              "mbarrier.try_wait{.acquire|.relaxed}{.cta|.cluster}{.shared|.shared::cta}.b64"              "d:pred, [m], s:u64{, t:u32}"      "7.8" sm_90 Waits;
    TryWaitParity        "mbarrier.try_wait.parity{.acquire|.relaxed}{.cta|.cluster}{.shared|.shared::cta}.b64"       "d:pred, [m], a:u32(0 1){, t:u32}" "7.8" sm_90 Waits;
    PendingCount         "mbarrier.pending_count.b64"                                                                 "d:u32, s:u64"                     "7.0" sm_80 Pure;
}
