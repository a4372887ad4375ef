//! Tables that grow with the memory that is touched.

/// Makes room for more, a quarter of what is there: doubling would leave half of a large shadow unused.
pub fn make_room<T>(all: &mut Vec<T>, more: usize) {
    if all.len() + more > all.capacity() {
        all.reserve_exact(more.max(all.len() / 4));
    }
}

pub fn push<T>(all: &mut Vec<T>, one: T) {
    make_room(all, 1);
    all.push(one);
}

/// Side tables whose entries are used again.
#[derive(Clone, Default)]
pub struct Pool<T> {
    pub all: Vec<T>,
    pub free: Vec<u32>,
}

impl<T> Pool<T> {
    /// Bytes that are allocated, those that entries refer to included.
    pub fn allocated(&self, referred: impl Fn(&T) -> usize) -> usize {
        let own = self.all.capacity() * size_of::<T>() + self.free.capacity() * size_of::<u32>();
        own + self.all.iter().map(referred).sum::<usize>()
    }
}

impl<T: Default> Pool<T> {
    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            push(&mut self.all, T::default());
            self.all.len() as u32 - 1
        })
    }
}
