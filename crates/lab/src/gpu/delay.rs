//! A kernel that does nothing for a while: how a slowdown of known size is injected.

use std::sync::Arc;
use std::time::Duration;

use cuda::{Context, Module, Stream};

const PTX: &str = "\
.version 7.0
.target sm_70
.address_size 64
.visible .entry delay(.param .u64 nanoseconds)
{
    .reg .b64 %until, %now;
    .reg .pred %early;
    ld.param.u64 %until, [nanoseconds];
    mov.u64 %now, %globaltimer;
    add.u64 %until, %until, %now;
wait:
    mov.u64 %now, %globaltimer;
    setp.lt.u64 %early, %now, %until;
    @%early bra wait;
    ret;
}
";

pub struct Delay {
    module: Module,
    time: Duration,
}

impl Delay {
    pub fn new(context: &Arc<Context>, time: Duration) -> Result<Delay, cuda::Error> {
        Ok(Delay { module: Module::from_ptx(context, "delay.ptx", PTX)?, time })
    }

    pub fn enqueue(&self, stream: &Stream) -> Result<(), cuda::Error> {
        self.module.function("delay")?.start(stream, [1, 1], &[self.time.as_nanos() as u64])
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_is_well_formed() {
        let parsed = ptx::parse(&ptx::Source::new("delay.ptx", super::PTX)).unwrap();
        assert!(ptx::verify(&parsed).is_empty());
    }
}
