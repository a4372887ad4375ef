//! Floating-point arithmetic. PTX ISA, "Floating-Point Instructions", "Half Precision Floating-Point Instructions".

#[rustfmt::skip] // One row per line.
super::forms! { Float:
    // op                       spelling, as the PTX manual writes it                                        operands             PTX   target effect
    Add                         "add{.rn|.rz|.rm|.rp}{.ftz}{.sat}.f32"                                       "d:T, a:T, b:T"      "1.0" sm_10 Pure;
    Subtract                    "sub{.rn|.rz|.rm|.rp}{.ftz}{.sat}.f32"                                       "d:T, a:T, b:T"      "1.0" sm_10 Pure;
    Multiply                    "mul{.rn|.rz|.rm|.rp}{.ftz}{.sat}.f32"                                       "d:T, a:T, b:T"      "1.0" sm_10 Pure;
    FusedMultiplyAdd            "fma(.rn|.rz|.rm|.rp){.ftz}{.sat}.f32"                                       "d:T, a:T, b:T, c:T" "2.0" sm_20 Pure;
    MultiplyAdd                 "mad(.rn|.rz|.rm|.rp){.ftz}{.sat}.f32"                                       "d:T, a:T, b:T, c:T" "1.0" sm_20 Pure;
    Divide                      "div(.rn|.rz|.rm|.rp){.ftz}.f32"                                             "d:T, a:T, b:T"      "1.4" sm_20 Pure;
    DivideFull                  "div.full{.ftz}.f32"                                                         "d:T, a:T, b:T"      "1.0" sm_10 Pure;
    DivideApproximate           "div.approx{.ftz}.f32"                                                       "d:T, a:T, b:T"      "1.4" sm_10 Pure;
    Minimum                     "min{.ftz}{.NaN}{.xorsign}{.abs}.f32"                                        "d:T, a:T, b:T"      "1.0" sm_10 Pure;
    Maximum                     "max{.ftz}{.NaN}{.xorsign}{.abs}.f32"                                        "d:T, a:T, b:T"      "1.0" sm_10 Pure;
    Negate                      "neg{.ftz}.f32"                                                              "d:T, a:T"           "1.0" sm_10 Pure;
    Absolute                    "abs{.ftz}.f32"                                                              "d:T, a:T"           "1.0" sm_10 Pure;
    CopySign                    "copysign(.f32|.f64)"                                                        "d:T, a:T, b:T"      "2.0" sm_20 Pure;
    TestProperty                "testp(.finite|.infinite|.number|.notanumber|.normal|.subnormal)(.f32|.f64)" "d:pred, a:T"        "2.0" sm_20 Pure;
    PowerOfTwo                  "ex2.approx{.ftz}.f32"                                                       "d:T, a:T"           "1.4" sm_10 Pure;
    LogarithmOfTwo              "lg2.approx{.ftz}.f32"                                                       "d:T, a:T"           "1.4" sm_10 Pure;
    Sine                        "sin.approx{.ftz}.f32"                                                       "d:T, a:T"           "1.4" sm_10 Pure;
    Cosine                      "cos.approx{.ftz}.f32"                                                       "d:T, a:T"           "1.4" sm_10 Pure;
    HyperbolicTangent           "tanh.approx.f32"                                                            "d:T, a:T"           "7.0" sm_75 Pure;
    Reciprocal                  "rcp.approx{.ftz}.f32"                                                       "d:T, a:T"           "1.4" sm_10 Pure;
    ReciprocalExact             "rcp(.rn|.rz|.rm|.rp){.ftz}.f32"                                             "d:T, a:T"           "1.4" sm_20 Pure;
    SquareRoot                  "sqrt(.rn|.rz|.rm|.rp){.ftz}.f32"                                            "d:T, a:T"           "1.4" sm_20 Pure;
    SquareRootApproximate       "sqrt.approx{.ftz}.f32"                                                      "d:T, a:T"           "1.4" sm_10 Pure;
    ReciprocalRoot              "rsqrt.approx{.ftz}.f32"                                                     "d:T, a:T"           "1.4" sm_10 Pure;
    AddDouble                   "add{.rn|.rz|.rm|.rp}.f64"                                                   "d:T, a:T, b:T"      "1.0" sm_13 Pure;
    SubtractDouble              "sub{.rn|.rz|.rm|.rp}.f64"                                                   "d:T, a:T, b:T"      "1.0" sm_13 Pure;
    MultiplyDouble              "mul{.rn|.rz|.rm|.rp}.f64"                                                   "d:T, a:T, b:T"      "1.0" sm_13 Pure;
    FusedMultiplyAddDouble      "fma(.rn|.rz|.rm|.rp).f64"                                                   "d:T, a:T, b:T, c:T" "1.4" sm_13 Pure;
    MultiplyAddDouble           "mad(.rn|.rz|.rm|.rp).f64"                                                   "d:T, a:T, b:T, c:T" "1.4" sm_13 Pure;
    DivideDouble                "div(.rn|.rz|.rm|.rp).f64"                                                   "d:T, a:T, b:T"      "1.4" sm_13 Pure;
    MinimumDouble               "min.f64"                                                                    "d:T, a:T, b:T"      "1.0" sm_13 Pure;
    MaximumDouble               "max.f64"                                                                    "d:T, a:T, b:T"      "1.0" sm_13 Pure;
    NegateDouble                "neg.f64"                                                                    "d:T, a:T"           "1.0" sm_13 Pure;
    AbsoluteDouble              "abs.f64"                                                                    "d:T, a:T"           "1.0" sm_13 Pure;
    ReciprocalDouble            "rcp(.rn|.rz|.rm|.rp).f64"                                                   "d:T, a:T"           "1.4" sm_13 Pure;
    ReciprocalDoubleApproximate "rcp.approx.ftz.f64"                                                         "d:T, a:T"           "2.1" sm_20 Pure;
    SquareRootDouble            "sqrt(.rn|.rz|.rm|.rp).f64"                                                  "d:T, a:T"           "1.4" sm_13 Pure;
    ReciprocalRootDouble        "rsqrt.approx{.ftz}.f64"                                                     "d:T, a:T"           "1.4" sm_13 Pure;
}
