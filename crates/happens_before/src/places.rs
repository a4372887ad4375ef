//! Where the lanes of an instruction touch memory. Who already knows that they lie in a row need not write it out.

/// Addresses of the lanes that take part.
#[derive(Clone, Copy, Debug)]
pub enum Places<'a> {
    /// One behind the other from here on, lane 0 first.
    Row(u64),
    /// All at one place.
    Same(u64),
    Each(&'a [u64; 32]),
}

impl Places<'_> {
    /// The first byte that a lane touches, if each touches `bytes`.
    #[inline]
    pub fn at(&self, lane: u8, bytes: u32) -> u64 {
        match self {
            Places::Row(start) => start + u64::from(lane) * u64::from(bytes),
            Places::Same(place) => *place,
            Places::Each(addresses) => addresses[lane as usize],
        }
    }
}
