//! What a call reads besides Q, K and V: arrays of one number for each head, row or sequence.

use super::Error;
use cuda::{DeviceBuffer, DeviceSlice};

/// Numbers on the host or on a GPU, wherever Q, K and V are. Every option that takes one takes what it can be made of:
/// `&[T]`, `&[T; N]` or `&Vec<T>` beside host tensors, [`DeviceSlice`] or `&`[`DeviceBuffer`] beside device tensors.
#[derive(Clone, Copy, Debug)]
pub enum Array<'a, T> {
    /// For host tensors.
    Host(&'a [T]),
    /// For device tensors: elements of four bytes, little-endian, aligned to four.
    Device(DeviceSlice<'a>),
}

impl<'a, T> From<&'a [T]> for Array<'a, T> {
    fn from(values: &'a [T]) -> Array<'a, T> {
        Array::Host(values)
    }
}

impl<'a, T, const COUNT: usize> From<&'a [T; COUNT]> for Array<'a, T> {
    fn from(values: &'a [T; COUNT]) -> Array<'a, T> {
        Array::Host(values)
    }
}

impl<'a, T> From<&'a Vec<T>> for Array<'a, T> {
    fn from(values: &'a Vec<T>) -> Array<'a, T> {
        Array::Host(values)
    }
}

impl<'a, T> From<DeviceSlice<'a>> for Array<'a, T> {
    fn from(memory: DeviceSlice<'a>) -> Array<'a, T> {
        Array::Device(memory)
    }
}

impl<'a, T> From<&'a DeviceBuffer> for Array<'a, T> {
    fn from(memory: &'a DeviceBuffer) -> Array<'a, T> {
        Array::Device(memory.slice())
    }
}

/// Which array it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    CuQ,
    CuK,
    Slopes,
    ScoreNumbers,
    Sinks,
    QIds,
    KIds,
}

impl Extra {
    /// In the order in which kernels take them.
    pub const ALL: [Extra; 7] =
        [Extra::CuQ, Extra::CuK, Extra::Slopes, Extra::ScoreNumbers, Extra::Sinks, Extra::QIds, Extra::KIds];

    /// What the options call it.
    pub fn argument(self) -> &'static str {
        match self {
            Extra::CuQ => "cu_q",
            Extra::CuK => "cu_k",
            Extra::Slopes => "slopes",
            Extra::ScoreNumbers => "score_numbers",
            Extra::Sinks => "sinks",
            Extra::QIds => "q_ids",
            Extra::KIds => "k_ids",
        }
    }
}

/// The arrays of a call, each as an `A`. Most calls have none, and pay for none.
#[derive(Clone, Copy, Debug)]
pub struct Extras<A> {
    arrays: [Option<A>; Extra::ALL.len()],
    /// A bit for each that is there.
    given: u8,
}

impl<A> Default for Extras<A> {
    fn default() -> Extras<A> {
        Extras { arrays: [const { None }; Extra::ALL.len()], given: 0 }
    }
}

impl<A> Extras<A> {
    pub fn set(&mut self, extra: Extra, array: A) {
        self.arrays[extra as usize] = Some(array);
        self.given |= 1 << extra as usize;
    }

    pub fn get(&self, extra: Extra) -> Option<&A> {
        self.arrays[extra as usize].as_ref()
    }

    /// In the order of [`Extra::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Extra, &A)> {
        let mut rest = self.given;
        std::iter::from_fn(move || {
            let extra = *Extra::ALL.get(rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some((extra, self.get(extra)?))
        })
    }

    pub fn try_map<'s, B>(&'s self, map: impl Fn(Extra, &'s A) -> Result<B, Error>) -> Result<Extras<B>, Error> {
        let mut mapped = Extras::default();
        for (extra, array) in self.iter() {
            mapped.set(extra, map(extra, array)?);
        }
        Ok(mapped)
    }
}

/// Where an array lies on a GPU.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    pub address: u64,
    pub bytes: u64,
    pub device: u32,
}

impl From<DeviceSlice<'_>> for Memory {
    fn from(slice: DeviceSlice) -> Memory {
        Memory { address: slice.address(), bytes: slice.bytes() as u64, device: slice.device() }
    }
}

/// The numbers of an array; each has four bytes.
#[derive(Clone, Copy, Debug)]
pub enum Words<'a> {
    Floats(&'a [f32]),
    Integers(&'a [u32]),
    Device(DeviceSlice<'a>),
}

pub const WORD_BYTES: u64 = 4;

impl<'a> From<Array<'a, f32>> for Words<'a> {
    fn from(array: Array<'a, f32>) -> Words<'a> {
        match array {
            Array::Host(values) => Words::Floats(values),
            Array::Device(memory) => Words::Device(memory),
        }
    }
}

impl<'a> From<Array<'a, u32>> for Words<'a> {
    fn from(array: Array<'a, u32>) -> Words<'a> {
        match array {
            Array::Host(values) => Words::Integers(values),
            Array::Device(memory) => Words::Device(memory),
        }
    }
}

impl<'a> Words<'a> {
    /// How many bytes they have.
    pub fn bytes(&self) -> u64 {
        match self {
            Words::Floats(values) => values.len() as u64 * WORD_BYTES,
            Words::Integers(values) => values.len() as u64 * WORD_BYTES,
            Words::Device(memory) => memory.bytes() as u64,
        }
    }

    /// For host tensors.
    pub fn on_host(self, extra: Extra) -> Result<&'a [u8], Error> {
        match self {
            Words::Floats(values) => Ok(bytemuck::cast_slice(values)),
            Words::Integers(values) => Ok(bytemuck::cast_slice(values)),
            Words::Device(_) => {
                let (found, expected) = ("memory of a GPU", "a slice on the host");
                Err(Error::Place { argument: extra.argument(), found, expected })
            }
        }
    }

    /// For device tensors.
    pub fn on_device(self, extra: Extra) -> Result<Memory, Error> {
        match self {
            Words::Device(memory) => Ok(memory.into()),
            _ => {
                let (found, expected) = ("a slice on the host", "memory of the GPU");
                Err(Error::Place { argument: extra.argument(), found, expected })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_come_in_the_order_of_the_kernel() {
        let mut extras = Extras::default();
        assert_eq!(extras.iter().count(), 0);
        for extra in [Extra::KIds, Extra::CuQ, Extra::Sinks] {
            extras.set(extra, extra.argument());
        }
        let all: Vec<_> = extras.iter().map(|(extra, name)| (extra, *name)).collect();
        assert_eq!(all, [(Extra::CuQ, "cu_q"), (Extra::Sinks, "sinks"), (Extra::KIds, "k_ids")]);
        assert_eq!((extras.get(Extra::Sinks), extras.get(Extra::CuK)), (Some(&"sinks"), None));
    }

    #[test]
    fn each_option_takes_what_an_array_can_be_made_of() {
        let vector = vec![1.0, 2.0];
        for words in [Array::from(&vector), Array::from(&[1.0, 2.0]), Array::from(&vector[..])].map(Words::from) {
            assert_eq!((words.bytes(), words.on_host(Extra::Sinks).unwrap().len()), (8, 8));
            let error = words.on_device(Extra::Sinks).unwrap_err().to_string();
            assert_eq!(error, "`sinks` is a slice on the host: expected memory of the GPU, where `q` is");
        }
    }
}
