//! Barriers of a block, and mbarriers. PTX ISA, "bar, barrier", "mbarrier".

#[rustfmt::skip] // One row per line.
super::forms! { Barrier:
    // op            spelling, as the PTX manual writes it                                              operands                         PTX   target effect
    Synchronise      "bar{.cta}.sync"                                                                    "a:u32(0..15){, b:u32(*32)}"       "1.0" sm_10  Orders;
    SynchroniseAligned "barrier{.cta}.sync{.aligned}"                                                    "a:u32(0..15){, b:u32(*32)}"       "6.0" sm_30  Orders;
    Arrive           "bar{.cta}.arrive"                                                                  "a:u32(0..15), b:u32(*32)"        "2.0" sm_20  Orders;
    PhaseTryWait     "mbarrier.try_wait.parity{.acquire}{.cta|.cluster}{.shared|.shared::cta}.b64"       "d:pred, [m], a:u32(0 1){, t:u32}""7.8" sm_90  Waits;
}
