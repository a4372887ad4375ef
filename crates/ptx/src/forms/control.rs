//! Control flow. PTX ISA, "Control Flow Instructions".

#[rustfmt::skip] // One row per line.
super::forms! { Control:
    // op        spelling, as the PTX manual writes it operands                    PTX   target effect
    Branch       "bra{.uni}"     "l:label"                   "1.0" sm_10 Jumps;
    BranchTable  "brx.idx{.uni}" "a:u32, l:label"            "6.0" sm_30 Jumps;
    Call         "call{.uni}"    "(d), f:function, (a)"      "1.0" sm_10 Jumps;
    CallIndirect "call{.uni}"    "(d), f:u64^, (a), l:label" "2.1" sm_20 Jumps;
    Return       "ret{.uni}"     ""                          "1.0" sm_10 Jumps;
    Exit         "exit"          ""                          "1.0" sm_10 Jumps;
    Trap         "trap"          ""                          "1.0" sm_10 Jumps;
    Breakpoint   "brkpt"         ""                          "1.0" sm_11 Jumps;
}
