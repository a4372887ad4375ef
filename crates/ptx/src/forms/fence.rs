//! Order between accesses and between proxies. PTX ISA, "membar, fence".

#[rustfmt::skip] // One row per line.
super::forms! { Fence:
    // op            spelling, as the PTX manual writes it                      operands          PTX   target effect
    Barrier          "membar(.cta|.gl|.sys)"                                    ""                "1.4" sm_10 Orders;
    Scope            "fence{.sc|.acq_rel}(<scope>)"                             ""                "6.0" sm_70 Orders;
    OneWay           "fence(.acquire|.release)(<scope>)"                        ""                "8.6" sm_90 Orders;
    PhaseInit        "fence.mbarrier_init.release.cluster"                      ""                "8.0" sm_90 Orders;
    Alias            "fence.proxy.alias"                                        ""                "7.5" sm_70 Orders;
    Async            "fence.proxy.async{.global|.shared::cta|.shared::cluster}" ""                "8.0" sm_90 Orders;
    TensorMapRelease "fence.proxy.tensormap::generic.release(<scope>)"          ""                "8.3" sm_90 Orders;
    TensorMapAcquire "fence.proxy.tensormap::generic.acquire(<scope>)"          "[a], n:imm(128)" "8.3" sm_90 Orders;
}
