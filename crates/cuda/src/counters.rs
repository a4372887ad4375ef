//! Words on a GPU that are zero between launches: blocks of a launch count with one which work is taken.
//!
//! Two launches that run at once must not share one: each would leave out what the other has taken, and the word would not be zero again.
//! So every stream has its own, since the launches of a stream run one behind the other; a stream's id is never used again, so that one that
//! was destroyed with work in it is not mixed up with the next. A launch that is recorded gets a word that nobody else ever has: its graph may
//! run in any stream, at any time. (A graph does not run beside itself, and if it were made ready to run twice, both would write the same
//! output, which is their caller's to prevent.)

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::buffer::DeviceBuffer;
use crate::context::Context;
use crate::error::Error;
use crate::stream::Stream;

/// Words of one allocation. When they are all taken, by as many streams and recorded launches, there is another one.
const WORDS: u64 = 16384;
const WORD_BYTES: u64 = size_of::<u32>() as u64;

/// The words of a context.
#[derive(Debug)]
pub struct Counters {
    context: Arc<Context>,
    taken: Mutex<Taken<DeviceBuffer>>,
}

/// Who has which.
#[derive(Debug)]
struct Taken<Memory> {
    /// Those that are full stay, too.
    memory: Vec<Memory>,
    /// Of the last one.
    next: u64,
    by_stream: HashMap<u64, u64>,
}

impl Counters {
    /// The first ones; none is taken yet.
    pub fn new(context: &Arc<Context>) -> Result<Counters, Error> {
        let first = zeros(context)?;
        Ok(Counters { context: context.clone(), taken: Mutex::new(Taken::new(first)) })
    }

    /// The address of the word for the next launch in the stream. Allocates nothing for a stream that it has met, and does not wait.
    pub fn of(&self, stream: &Stream) -> Result<u64, Error> {
        self.context.check_same("stream", stream.context.id())?;
        let of_stream = if stream.is_recording()? { None } else { Some(stream.id()?) };
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.word(of_stream, DeviceBuffer::address, || zeros(&self.context))
    }
}

fn zeros(context: &Arc<Context>) -> Result<DeviceBuffer, Error> {
    let (stream, mut memory) = (Stream::new(context)?, DeviceBuffer::new(context, (WORDS * WORD_BYTES) as usize)?);
    memory.fill(&stream, 0)?;
    stream.synchronise()?;
    Ok(memory)
}

impl<Memory> Taken<Memory> {
    fn new(first: Memory) -> Taken<Memory> {
        Taken { memory: vec![first], next: 0, by_stream: HashMap::new() }
    }

    /// That of the stream, or one for nobody else.
    fn word(
        &mut self,
        stream: Option<u64>,
        address: impl FnOnce(&Memory) -> u64,
        more: impl FnOnce() -> Result<Memory, Error>,
    ) -> Result<u64, Error> {
        if let Some(known) = stream.and_then(|id| self.by_stream.get(&id)) {
            return Ok(*known);
        }
        if self.next == WORDS || self.memory.is_empty() {
            self.memory.push(more()?);
            self.next = 0;
        }
        let word = self.memory.last().map(address).unwrap_or_default() + self.next * WORD_BYTES;
        self.next += 1;
        self.by_stream.extend(stream.map(|id| (id, word)));
        Ok(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn word(taken: &mut Taken<u64>, stream: Option<u64>) -> u64 {
        let next = 0x1_0000_0000 * (taken.memory.len() as u64 + 1);
        taken.word(stream, |address| *address, || Ok(next)).unwrap()
    }

    #[test]
    fn a_stream_keeps_its_word_and_no_other_has_it() {
        let mut taken = Taken::new(0x1000);
        let [first, second] = [1, 2].map(|stream| word(&mut taken, Some(stream)));
        assert_eq!([first, second], [0x1000, 0x1004]);
        assert_eq!([2, 1, 2].map(|stream| word(&mut taken, Some(stream))), [second, first, second]);
    }

    #[test]
    fn recorded_launches_share_with_nobody() {
        let mut taken = Taken::new(0x1000);
        let streams = [1, 2].map(|stream| word(&mut taken, Some(stream)));
        let recorded: HashSet<u64> = (0..3 * WORDS).map(|_| word(&mut taken, None)).collect();
        assert_eq!(recorded.len() as u64, 3 * WORDS);
        assert!(streams.iter().all(|word| !recorded.contains(word)));
        assert_eq!(word(&mut taken, Some(1)), streams[0], "also when its memory is full");
        assert_eq!(taken.memory.len(), 4);
    }

    #[test]
    fn words_that_could_not_be_had_are_asked_for_again() {
        let mut taken = Taken { memory: vec![], next: 0, by_stream: HashMap::new() };
        assert!(taken.word(Some(1), |address: &u64| *address, || Err(Error::NoGpu)).is_err());
        assert_eq!(word(&mut taken, Some(1)), 0x1_0000_0000);
    }
}
