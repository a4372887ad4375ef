//! Many buffers at once: one launch overwrites all of them, another reduces each to a fingerprint. What a sample leaves can so
//! be checked after every sample, where it lies.

use std::sync::Arc;

use cuda::{Context, DeviceBuffer, Module, Stream};

const PTX: &str = include_str!("buffers.ptx");
/// Blocks that share a buffer, and threads of a block, as the kernels have them.
const BLOCKS: u32 = 32;
const THREADS: u32 = 256;
const ROW_BYTES: usize = 16;

/// 128 bits of what a buffer holds. Two buffers that differ have the same one by accident in 2^-64 at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u64; 2]);

/// The kernels.
pub struct BufferKernels {
    module: Module,
    context: Arc<Context>,
}

/// Buffers of somebody else's, by address and bytes.
pub struct Buffers {
    list: DeviceBuffer,
    count: usize,
}

/// Places for the fingerprints of launches that nobody has waited for yet.
pub struct Prints {
    sums: DeviceBuffer,
    count: usize,
}

impl BufferKernels {
    pub fn new(context: &Arc<Context>) -> Result<BufferKernels, cuda::Error> {
        Ok(BufferKernels { module: Module::from_ptx(context, "buffers.ptx", PTX)?, context: context.clone() })
    }

    /// They must live as long as the list is used.
    pub fn list(&self, stream: &Stream, places: &[(u64, usize)]) -> Result<Buffers, cuda::Error> {
        let row = |(address, bytes): &(u64, usize)| [*address, *bytes as u64].map(u64::to_le_bytes).concat();
        let rows: Vec<u8> = places.iter().flat_map(row).collect();
        let mut list = DeviceBuffer::new(&self.context, rows.len())?;
        if !rows.is_empty() {
            list.write(stream, &rows)?;
        }
        Ok(Buffers { list, count: places.len() })
    }

    /// Overwrites all of them with a byte, and does not wait.
    pub fn overwrite(&self, stream: &Stream, buffers: &Buffers, byte: u8) -> Result<(), cuda::Error> {
        self.start(stream, "overwrite", buffers, &[u64::from_le_bytes([byte; 8])])
    }

    /// Overwrites each with the one of the same number in another list, which is as long, and does not wait.
    pub fn restore(&self, stream: &Stream, buffers: &Buffers, from: &Buffers) -> Result<(), cuda::Error> {
        self.start(stream, "restore", buffers, &[from.list.address()])
    }

    /// Changes signs of 16-bit numbers: the address of the masks of a row, its words, and whether zeros lose theirs.
    pub fn flip(&self, stream: &Stream, buffers: &Buffers, arguments: [u64; 3]) -> Result<(), cuda::Error> {
        self.start(stream, "flip", buffers, &arguments)
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Places for so many fingerprints.
    pub fn prints(&self, stream: &Stream, count: usize) -> Result<Prints, cuda::Error> {
        let mut sums = DeviceBuffer::new(&self.context, count * ROW_BYTES)?;
        sums.fill(stream, 0)?;
        Ok(Prints { sums, count })
    }

    /// Puts the fingerprints into the places from `first` on, each used once, and does not wait.
    pub fn take(&self, stream: &Stream, of: &Buffers, to: &Prints, first: usize) -> Result<(), cuda::Error> {
        debug_assert!(first + of.count <= to.count);
        self.start(stream, "fingerprint", of, &[to.sums.address() + (first * ROW_BYTES) as u64])
    }

    /// The fingerprints of all of them, now.
    pub fn fingerprints(&self, stream: &Stream, of: &Buffers) -> Result<Vec<Fingerprint>, cuda::Error> {
        let prints = self.prints(stream, of.count)?;
        self.take(stream, of, &prints, 0)?;
        prints.read(stream)
    }

    fn start(&self, stream: &Stream, entry: &str, on: &Buffers, arguments: &[u64]) -> Result<(), cuda::Error> {
        if on.count == 0 {
            return Ok(());
        }
        let blocks = BLOCKS * on.count as u32;
        let arguments: Vec<u64> = std::iter::once(on.list.address()).chain(arguments.iter().copied()).collect();
        self.module.function(entry)?.start(stream, [blocks, THREADS], &arguments)
    }
}

impl Prints {
    /// As new.
    pub fn clear(&mut self, stream: &Stream) -> Result<(), cuda::Error> {
        self.sums.fill(stream, 0)
    }

    /// All of them, after what the stream holds.
    pub fn read(&self, stream: &Stream) -> Result<Vec<Fingerprint>, cuda::Error> {
        let mut bytes = vec![0; self.count * ROW_BYTES];
        if bytes.is_empty() {
            return Ok(vec![]);
        }
        self.sums.read(stream, &mut bytes)?;
        let (words, _) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        Ok(words.chunks_exact(2).map(|pair| Fingerprint([pair[0], pair[1]])).collect())
    }
}

#[cfg(test)]
mod tests {
    use emulator::Emulator;
    use launch::backend::{Backend, Options};
    use launch::{Kernel, Limits, Memory, Recipe};

    use super::*;

    /// Two buffers of 20,019 and 8 bytes.
    const RECIPE: &str = r#"
        [buffer.long]
        type = "u8"
        shape = [20019]
        init = "normal(50.0)"
        [buffer.short]
        type = "u8"
        shape = [8]
        init = "ramp"
        [buffer.list]
        type = "u64"
        shape = [4]
        init = "zeros"
        [buffer.sums]
        type = "u64"
        shape = [4]
        init = "zeros"
    "#;
    /// Fills in the list, which a recipe cannot: it has addresses.
    const LIST: &str = "
.visible .entry fill_list(.param .u64 list, .param .u64 long, .param .u64 short)
{
    .reg .b64 %list, %buffer;
    ld.param.u64 %list, [list];
    ld.param.u64 %buffer, [long];
    st.global.u64 [%list], %buffer;
    st.global.u64 [%list+8], 20019;
    ld.param.u64 %buffer, [short];
    st.global.u64 [%list+16], %buffer;
    st.global.u64 [%list+24], 8;
    ret;
}
";
    const FILL: &str = "[[launch]]\nentry = \"fill_list\"\ngrid = [1, 1, 1]\nblock = [1, 1, 1]\n\
                        args = [{ buffer = \"list\" }, { buffer = \"long\" }, { buffer = \"short\" }]\n";

    /// Runs an entry over both buffers, and says what all buffers hold then.
    fn run(entry: &str, argument: &str, change: impl FnOnce(&mut Memory)) -> Vec<Vec<u8>> {
        let launch = format!(
            "[[launch]]\nentry = \"{entry}\"\ngrid = [64, 1, 1]\nblock = [256, 1, 1]\nargs = [{{ buffer = \"list\" }}, {argument}]\n"
        );
        run_all(&format!("{FILL}{launch}"), &format!("{PTX}{LIST}"), change)
    }

    /// Runs the launches of a recipe, and says what all buffers hold then.
    fn run_all(launches: &str, text: &str, change: impl FnOnce(&mut Memory)) -> Vec<Vec<u8>> {
        let recipe = Recipe::parse("buffers.toml", &format!("{RECIPE}{launches}")).unwrap();
        let kernel = Kernel::with_text("buffers.ptx", text, recipe).unwrap();
        let mut memory = Memory::new(&kernel.resolve(&Limits::default()).unwrap(), 0).unwrap();
        change(&mut memory);
        let mut loaded = Emulator.load(&kernel).unwrap();
        let run = Emulator.run(&mut loaded, &mut memory, &Options::default()).unwrap();
        assert!(run.findings.is_empty(), "{:?}", run.findings);
        memory.buffers.iter().map(|buffer| buffer.contents.to_vec()).collect()
    }

    fn sums(change: impl FnOnce(&mut Memory)) -> Vec<u8> {
        run("fingerprint", "{ buffer = \"sums\" }", change)[3].clone()
    }

    fn with_byte(buffer: usize, at: usize, byte: u8) -> impl FnOnce(&mut Memory) {
        move |memory| {
            let mut bytes = memory.buffers[buffer].contents.to_vec();
            bytes[at] = byte;
            memory.buffers[buffer].contents = bytes.into();
        }
    }

    #[test]
    fn every_byte_is_overwritten_and_none_behind() {
        let after = run("overwrite", "{ u64 = 11936128518282651045 }", |_| ());
        assert_eq!(after[0], [0xa5; 20019]);
        assert_eq!(after[1], [0xa5; 8]);
    }

    #[test]
    fn every_byte_is_copied_and_none_behind() {
        let fill = "
.visible .entry fill_copies(.param .u64 copies, .param .u64 from)
{
    .reg .b64 %copies, %from;
    ld.param.u64 %copies, [copies];
    ld.param.u64 %from, [from];
    st.global.u64 [%copies], %from;
    ret;
}
";
        let launches = "[buffer.from]\ntype = \"u8\"\nshape = [20019]\ninit = \"normal(70.0)\"\n\
                        [buffer.copies]\ntype = \"u64\"\nshape = [4]\ninit = \"zeros\"\n";
        let restore = "[[launch]]\nentry = \"fill_copies\"\ngrid = [1, 1, 1]\nblock = [1, 1, 1]\n\
                       args = [{ buffer = \"copies\" }, { buffer = \"from\" }]\n\
                       [[launch]]\nentry = \"restore\"\ngrid = [32, 1, 1]\nblock = [256, 1, 1]\n\
                       args = [{ buffer = \"list\" }, { buffer = \"copies\" }]\n";
        let after = run_all(&format!("{launches}{FILL}{restore}"), &format!("{PTX}{LIST}{fill}"), |_| ());
        assert_eq!(after[0], after[4]);
        assert!(after[1].iter().any(|byte| *byte != 0), "the other buffer is as it was");
    }

    #[test]
    fn one_byte_anywhere_makes_another_fingerprint() {
        let before = sums(|_| ());
        assert!(before.chunks(8).all(|word| word != [0; 8]), "{before:?}");
        assert_eq!(sums(|_| ()), before);
        for at in [0, 7, 8, 4_096, 16_383, 20_015, 20_016, 20_017, 20_018] {
            let after = sums(with_byte(0, at, 0x5a));
            assert_ne!(after[..8], before[..8], "byte {at}");
            assert_ne!(after[8..16], before[8..16], "byte {at}");
            assert_eq!(after[16..], before[16..], "the other buffer has its own");
        }
        assert_ne!(sums(with_byte(1, 3, 0xff))[16..], before[16..]);
    }

    /// Rows of two words: the second, the sixth and the seventh column change their signs.
    #[test]
    fn signs_change_by_column_and_change_back() {
        let masks: fn(&mut Memory) = |memory| {
            let words = [1u64 << 31, 1 << 31 | 1 << 47, 0, 0].map(u64::to_le_bytes).concat();
            memory.buffers[3].contents = words.into();
            // 1.0, 0.0 and −0.0 in f16, and a tail that no row has.
            let row = [0x3c00u16, 0x3c00, 0, 0x8000, 0x3c00, 0x8000, 0x0000, 0xbc00].map(u16::to_le_bytes).concat();
            memory.buffers[0].contents = row.into_iter().cycle().take(20_019).collect::<Vec<_>>().into();
        };
        let halves = |bytes: &[u8]| -> Vec<u16> {
            bytes[..16].chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]])).collect()
        };
        let plain = run("flip", "{ buffer = \"sums\" }, { u64 = 2 }, { u64 = 0 }", masks);
        assert_eq!(halves(&plain[0]), [0x3c00, 0xbc00, 0, 0x8000, 0x3c00, 0, 0x8000, 0xbc00]);
        assert_eq!(plain[0][..16], plain[0][16..32], "every row");
        let folded = run("flip", "{ buffer = \"sums\" }, { u64 = 2 }, { u64 = 1 }", masks);
        assert_eq!(halves(&folded[0]), [0x3c00, 0xbc00, 0, 0, 0x3c00, 0, 0, 0xbc00]);
    }

    #[test]
    fn words_that_change_places_make_another_fingerprint() {
        let swapped = sums(|memory| {
            let mut bytes = memory.buffers[0].contents.to_vec();
            (0..8).for_each(|byte| bytes.swap(byte, 800 + byte));
            memory.buffers[0].contents = bytes.into();
        });
        assert_ne!(swapped[..16], sums(|_| ())[..16]);
    }
}
