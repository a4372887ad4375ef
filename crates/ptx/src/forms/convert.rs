//! Conversions between types. PTX ISA, "cvt".

#[rustfmt::skip] // One row per line.
super::forms! { Convert:
    // op                 spelling, as the PTX manual writes it                     operands                     PTX   target effect
    Integer               "cvt(.u8|.s8|<int>)(.u8|.s8|<int>)"                       "d:T>, a:U>$"                "1.0" sm_10 Pure;
    SaturateToU8          "cvt.sat.u8(.s8|.u16|.s16|.u32|.s32|.u64|.s64)"           "d:T>, a:U>"                 "1.0" sm_10 Pure;
    SaturateToS8          "cvt.sat.s8(.u8|.u16|.s16|.u32|.s32|.u64|.s64)"           "d:T>, a:U>"                 "1.0" sm_10 Pure;
    SaturateToU16         "cvt.sat.u16(.s8|.s16|.u32|.s32|.u64|.s64)"               "d:T>, a:U>"                 "1.0" sm_10 Pure;
    SaturateToS16         "cvt.sat.s16(.u16|.u32|.s32|.u64|.s64)"                   "d:T>, a:U>"                 "1.0" sm_10 Pure;
    SaturateToU32         "cvt.sat.u32(.s8|.s16|.s32|.u64|.s64)"                    "d:T>, a:U>"                 "1.0" sm_10 Pure;
    SaturateToS32         "cvt.sat.s32(.u32|.u64|.s64)"                             "d:T>, a:U>"                 "1.0" sm_10 Pure;
    SaturateToU64         "cvt.sat.u64(.s8|.s16|.s32|.s64)"                         "d:T>, a:U>"                 "1.0" sm_10 Pure;
    SaturateToS64         "cvt.sat.s64.u64"                                         "d:T>, a:U>"                 "1.0" sm_10 Pure;
    ToFloat               "cvt(.rn|.rz|.rm|.rp){.sat}.f32(.u8|.s8|<int>)"           "d:T>, a:U>"                 "1.0" sm_10 Pure;
    ToDouble              "cvt(.rn|.rz|.rm|.rp){.sat}.f64(.u8|.s8|<int>)"           "d:T>, a:U>"                 "1.0" sm_13 Pure;
    ToHalf                "cvt(.rn|.rz|.rm|.rp).f16(.u8|.s8|<int>)"                 "d:T>, a:U>"                 "1.0" sm_53 Pure;
    ToInteger             "cvt(.rni|.rzi|.rmi|.rpi){.ftz}{.sat}(.u8|.s8|<int>).f32" "d:T>, a:U>"                 "1.0" sm_10 Pure;
    DoubleToInteger       "cvt(.rni|.rzi|.rmi|.rpi){.sat}(.u8|.s8|<int>).f64"       "d:T>, a:U>"                 "1.0" sm_13 Pure;
    HalfToInteger         "cvt(.rni|.rzi|.rmi|.rpi){.sat}(.u8|.s8|<int>).f16"       "d:T>, a:U>"                 "1.0" sm_53 Pure;
    RoundToIntegral       "cvt{.rni|.rzi|.rmi|.rpi}{.ftz}{.sat}.f32.f32"            "d:T, a:U"                   "1.0" sm_10 Pure;
    RoundDoubleToIntegral "cvt{.rni|.rzi|.rmi|.rpi}{.sat}.f64.f64"                  "d:T, a:U"                   "1.0" sm_13 Pure;
    RoundHalfToIntegral   "cvt{.rni|.rzi|.rmi|.rpi}{.sat}.f16.f16"                  "d:T, a:U"                   "1.0" sm_53 Pure;
    WidenToDouble         "cvt{.ftz}{.sat}.f64.f32"                                 "d:T, a:U"                   "1.0" sm_13 Pure;
    NarrowToFloat         "cvt(.rn|.rz|.rm|.rp){.ftz}{.sat}.f32.f64"                "d:T, a:U"                   "1.0" sm_13 Pure;
    Widen                 "cvt{.ftz}{.sat}.f32.f16"                                 "d:T, a:U"                   "1.0" sm_53 Pure;
    WidenHalfToDouble     "cvt{.sat}.f64.f16"                                       "d:T, a:U"                   "1.0" sm_53 Pure;
    WidenBrain16          "cvt.f32.bf16"                                            "d:T, a:U"                   "7.1" sm_80 Pure;
    Narrow                "cvt(.rn|.rz).f16.f32"                                    "d:T, a:U"                   "1.0" sm_53 Pure;
    NarrowHalf            "cvt(.rm|.rp){.ftz}{.sat}.f16.f32"                        "d:T, a:U"                   "1.0" sm_53 Pure;
    NarrowHalfFlushed     "cvt(.rn|.rz).ftz{.sat}.f16.f32"                          "d:T, a:U"                   "1.0" sm_53 Pure;
    NarrowHalfSaturated   "cvt(.rn|.rz).sat.f16.f32"                                "d:T, a:U"                   "1.0" sm_53 Pure;
    NarrowHalfRelu        "cvt(.rn|.rz).relu.f16.f32"                               "d:T, a:U"                   "7.0" sm_80 Pure;
    NarrowDoubleToHalf    "cvt(.rn|.rz|.rm|.rp){.sat}.f16.f64"                      "d:T, a:U"                   "1.0" sm_53 Pure;
    NarrowBrain16         "cvt(.rn|.rz).bf16.f32"                                   "d:T, a:U"                   "7.0" sm_80 Pure;
    NarrowBrain16Relu     "cvt(.rn|.rz).relu.bf16.f32"                              "d:T, a:U"                   "7.0" sm_80 Pure;
    NarrowPair            "cvt(.rn|.rz)(.f16x2|.bf16x2).f32"                        "d:T, a:U, b:U"              "7.0" sm_80 Pure;
    NarrowPairRelu        "cvt(.rn|.rz).relu(.f16x2|.bf16x2).f32"                   "d:T, a:U, b:U"              "7.0" sm_80 Pure;
    NarrowTensor32        "cvt.rna{.satfinite}.tf32.f32"                            "d:tf32, a:f32^"             "7.0" sm_80 Pure;
    NarrowTensor32Rounded "cvt(.rn|.rz){.relu}.tf32.f32"                            "d:tf32, a:f32^"             "7.8" sm_90 Pure;
    NarrowPairTo8         "cvt.rn.satfinite{.relu}(.e4m3x2|.e5m2x2).f32"            "d:T, a:U, b:U"              "8.1" sm_89 Pure;
    NarrowHalvesTo8       "cvt.rn.satfinite{.relu}(.e4m3x2|.e5m2x2).f16x2"          "d:T, a:U"                   "8.1" sm_89 Pure;
    WidenFrom8            "cvt.rn{.relu}.f16x2(.e4m3x2|.e5m2x2)"                    "d:T, a:U"                   "8.1" sm_89 Pure;
    Pack                  "cvt.pack.sat(.s16|.u16).s32"                             "d:b32, a:s32, b:s32"        "6.5" sm_72 Pure;
    PackBytes             "cvt.pack.sat(.s8|.u8).s32.b32"                           "d:b32, a:s32, b:s32, c:b32" "6.5" sm_72 Pure;
}
