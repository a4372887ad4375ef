//! Moving data: registers, memory, addresses. PTX ISA, "Data Movement and Conversion Instructions".

#[rustfmt::skip] // One row per line.
super::forms! { Movement:
    // op            spelling, as the PTX manual writes it                                              operands                     PTX   target effect
    Move             "mov(.pred|.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64)"                 "d:T%, a:T&$%!"              "1.0" sm_10  Pure;
    ToSpace          "cvta.to(.global|.shared).u64"                                               "d:T, a:T"                   "2.0" sm_20  Pure;
    ToGeneric        "cvta(.global|.shared).u64"                                                  "d:T, a:T&"                  "2.0" sm_20  Pure;
    Load             "ld{.global|.shared|.shared::cta|.param}{.nc}{.v2|.v4}(<memory>)"            "d:T[V]>, [a:T[V]]"          "1.0" sm_10  Reads;
    LoadVolatile     "ld.volatile{.global|.shared|.shared::cta}{.v2|.v4}(<memory>)"                      "d:T[V]>, [a:T[V]]"          "1.1" sm_10  Reads;
    Store            "st{.global|.shared|.shared::cta}{.v2|.v4}(<memory>)"                        "[a:T[V]], b:T[V]>"          "1.0" sm_10  Writes;
    StoreVolatile    "st.volatile{.global|.shared|.shared::cta}{.v2|.v4}(<memory>)"                      "[a:T[V]], b:T[V]>"          "1.1" sm_10  Writes;
}
