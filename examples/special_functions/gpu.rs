//! A form on a GPU.

use super::Device;
use super::forms::{Form, Function, double_operand};
use cuda::{Context, DeviceBuffer, Error, Module, Stream};
use std::sync::Arc;

/// Per block.
pub const THREADS: u32 = 256;
pub const ENTRY: &str = "sweep";

pub struct Gpu {
    module: Module,
    stream: Stream,
    blocks: u32,
    results: DeviceBuffer,
    /// f64 operands come from this side; the others are their own numbers.
    operands: Option<DeviceBuffer>,
}

impl Gpu {
    /// For `chunk` operands at a time, a multiple of the threads of a block.
    pub fn new(context: &Arc<Context>, form: &Form, chunk: u64) -> Result<Gpu, Error> {
        let buffer = || DeviceBuffer::new(context, chunk as usize * form.bytes());
        let operands = matches!(form.function, Function::Double(_)).then(buffer).transpose()?;
        let module = Module::from_ptx(context, form.name, &kernel(form))?;
        let blocks = (chunk / u64::from(THREADS)) as u32;
        Ok(Gpu { module, stream: Stream::new(context)?, blocks, results: buffer()?, operands })
    }
}

impl Device for Gpu {
    fn results(&mut self, first: u64, room: &mut [u8]) -> Result<(), Error> {
        if let Some(operands) = &mut self.operands {
            let numbers = first..first + u64::from(self.blocks * THREADS);
            let bytes: Vec<u8> = numbers.flat_map(|number| double_operand(number).to_le_bytes()).collect();
            operands.write(&self.stream, &bytes)?;
        }
        let operands = self.operands.as_ref().map_or(0, DeviceBuffer::address);
        let parameters = [self.results.address(), first, operands];
        self.module.function(ENTRY)?.start(&self.stream, [self.blocks, THREADS], &parameters)?;
        self.results.read(&self.stream, room)
    }
}

/// One operand per thread: its number, or for f64 what is in memory there.
pub fn kernel(form: &Form) -> String {
    let (bits, bytes, name) = (8 * form.bytes(), form.bytes(), form.name);
    let operand = match form.function {
        Function::Half(_) => "cvt.u16.u64 %operand, %number;",
        Function::Single(_) => "cvt.u32.u64 %operand, %number;",
        Function::Double(_) => "ld.global.b64 %operand, [%from];",
    };
    format!(
        "\
.version 7.8
.target sm_90
.address_size 64
.visible .entry {ENTRY}(.param .u64 results, .param .u64 first, .param .u64 operands)
{{
    .reg .b{bits} %operand, %result;
    .reg .b32 %block, %threads, %thread, %index;
    .reg .b64 %to, %from, %number, %offset;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %index, %block, %threads, %thread;
    mul.wide.u32 %offset, %index, {bytes};
    ld.param.u64 %to, [results];
    add.u64 %to, %to, %offset;
    ld.param.u64 %from, [operands];
    add.u64 %from, %from, %offset;
    cvt.u64.u32 %offset, %index;
    ld.param.u64 %number, [first];
    add.u64 %number, %number, %offset;
    {operand}
    {name} %result, %operand;
    st.global.b{bits} [%to], %result;
    ret;
}}
"
    )
}
