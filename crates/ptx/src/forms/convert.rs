//! Conversions between types. PTX ISA, "cvt".

#[rustfmt::skip] // One row per line.
super::forms! { Convert:
    // op            spelling, as the PTX manual writes it                                              operands                       PTX   target effect
    Integer          "cvt(.u8|.s8|<int>)(.u8|.s8|<int>)"                                                 "d:T>, a:U>$"                  "1.0" sm_10  Pure;
    ToFloat          "cvt.rn.f32(.s32|.u32)"                                                             "d:T, a:U"                     "1.0" sm_10  Pure;
    ToInteger        "cvt(.rni|.rzi|.rmi|.rpi){.ftz}(.s32|.u32).f32"                                     "d:T, a:U"                     "1.0" sm_10  Pure;
    Widen            "cvt.f32.f16"                                                                       "d:T, a:U"                     "1.0" sm_53  Pure;
    WidenBrain16     "cvt.f32.bf16"                                                                      "d:T, a:U"                     "7.1" sm_80  Pure;
    Narrow           "cvt(.rn|.rz).f16.f32"                                                              "d:T, a:U"                     "1.0" sm_53  Pure;
    NarrowBrain16    "cvt(.rn|.rz).bf16.f32"                                                             "d:T, a:U"                     "7.0" sm_80  Pure;
    NarrowPair       "cvt(.rn|.rz)(.f16x2|.bf16x2).f32"                                                  "d:T, a:U, b:U"                "7.0" sm_80  Pure;
}
