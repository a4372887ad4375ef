//! What an instruction asks of the machine: registers, time, dependent grids. PTX ISA, "setmaxnreg", "griddepcontrol", "nanosleep".

#[rustfmt::skip] // One row per line.
super::forms! { Launch:
    // op            spelling, as the PTX manual writes it    operands           PTX   target effect
    Registers        "setmaxnreg(.inc|.dec).sync.aligned.u32" "n:imm(24..256*8)" "8.0" sm_90a Orders;
    LaunchDependents "griddepcontrol.launch_dependents"       ""                 "7.8" sm_90  Orders;
    WaitForGrids     "griddepcontrol.wait"                    ""                 "7.8" sm_90  Waits;
    Sleep            "nanosleep.u32"                          "t:u32"            "6.3" sm_70  Waits;
    CountEvent       "pmevent"                                "n:imm(0..15)"     "1.4" sm_10  Orders;
}
