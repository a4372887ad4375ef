//! Barriers of a block and of a cluster. PTX ISA, "bar, barrier", "barrier.cluster".

#[rustfmt::skip] // One row per line.
super::forms! { Barrier:
    // op              spelling, as the PTX manual writes it                 operands                                      PTX   target effect
    Synchronise        "bar{.cta}.sync"                                      "a:u32(0..15){, b:u32(*32)}"                  "1.0" sm_10 Orders;
    SynchroniseAligned "barrier{.cta}.sync{.aligned}"                        "a:u32(0..15){, b:u32(*32)}"                  "6.0" sm_30 Orders;
    Arrive             "bar{.cta}.arrive"                                    "a:u32(0..15), b:u32(*32)"                    "2.0" sm_20 Orders;
    ArriveAligned      "barrier{.cta}.arrive{.aligned}"                      "a:u32(0..15), b:u32(*32)"                    "6.0" sm_30 Orders;
    Count              "bar{.cta}.red.popc.u32"                              "d:u32, a:u32(0..15){, b:u32(*32)}, c:pred!"  "2.0" sm_20 Orders;
    CountAligned       "barrier{.cta}.red.popc{.aligned}.u32"                "d:u32, a:u32(0..15){, b:u32(*32)}, c:pred!"  "6.0" sm_30 Orders;
    Reduce             "bar{.cta}.red(.and|.or).pred"                        "d:pred, a:u32(0..15){, b:u32(*32)}, c:pred!" "2.0" sm_20 Orders;
    ReduceAligned      "barrier{.cta}.red(.and|.or){.aligned}.pred"          "d:pred, a:u32(0..15){, b:u32(*32)}, c:pred!" "6.0" sm_30 Orders;
    ClusterArrive      "barrier.cluster.arrive{.release|.relaxed}{.aligned}" ""                                            "7.8" sm_90 Orders;
    ClusterWait        "barrier.cluster.wait{.acquire}{.aligned}"            ""                                            "7.8" sm_90 Waits;
}
