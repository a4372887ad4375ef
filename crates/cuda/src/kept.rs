//! What a graph may have recorded stays until the graph is gone, though its owner drops it.
//!
//! A graph holds addresses of memory and code, and neither the driver nor a launch says which. So while a graph lives,
//! everything of its context that existed when it was recorded is only marked when it is dropped, and freed after the
//! graph. What was made later is freed at once: a program that holds one graph for ever does not pile up memory.

use std::any::Any;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A value that a graph of the context may refer to.
#[derive(Debug)]
pub struct Kept<T: Send + 'static> {
    value: Option<T>,
    context: u64,
    born: u64,
}

/// A recording, then the graph that came of it, as long as it lives.
#[derive(Debug)]
pub struct Holder {
    number: u64,
}

static YARD: Mutex<Yard> = Mutex::new(Yard { now: 0, holders: Vec::new(), dropped: Vec::new() });

struct Yard {
    /// Counts recordings and their ends: the age of things.
    now: u64,
    holders: Vec<Holding>,
    dropped: Vec<Dropped>,
}

struct Holding {
    number: u64,
    context: u64,
    /// When the recording ended; later things are not in it. None while it goes on.
    ended: Option<u64>,
}

struct Dropped {
    context: u64,
    born: u64,
    /// Frees itself.
    _value: Box<dyn Any + Send>,
}

impl Yard {
    fn lock() -> MutexGuard<'static, Yard> {
        YARD.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    fn is_held(&self, context: u64, born: u64) -> bool {
        let holds = |one: &Holding| one.context == context && one.ended.is_none_or(|ended| born < ended);
        self.holders.iter().any(holds)
    }

    /// Whatever nobody holds any more.
    fn take_free(&mut self) -> Vec<Dropped> {
        let (held, free) =
            mem::take(&mut self.dropped).into_iter().partition(|one| self.is_held(one.context, one.born));
        self.dropped = held;
        free
    }
}

impl<T: Send + 'static> Kept<T> {
    /// Of the context of that id.
    pub fn new(value: T, context: u64) -> Kept<T> {
        Kept { value: Some(value), context, born: Yard::lock().now }
    }
}

impl<T: Send + 'static> std::ops::Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("only Drop takes the value")
    }
}

impl<T: Send + 'static> Drop for Kept<T> {
    fn drop(&mut self) {
        let Some(value) = self.value.take() else { return };
        let mut yard = Yard::lock();
        if yard.is_held(self.context, self.born) {
            yard.dropped.push(Dropped { context: self.context, born: self.born, _value: Box::new(value) });
            return;
        }
        drop(yard); // Freeing waits for the GPU: nobody else should wait for that.
        drop(value);
    }
}

impl Holder {
    /// Before the first recorded launch.
    pub fn begin(context: u64) -> Holder {
        let mut yard = Yard::lock();
        let number = yard.tick();
        yard.holders.push(Holding { number, context, ended: None });
        Holder { number }
    }

    /// After the last recorded launch.
    pub fn end(&self) {
        let mut yard = Yard::lock();
        let now = yard.tick();
        yard.holders.iter_mut().filter(|one| one.number == self.number).for_each(|one| one.ended = Some(now));
        let free = yard.take_free();
        drop(yard);
        drop(free);
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let mut yard = Yard::lock();
        yard.holders.retain(|one| one.number != self.number);
        let free = yard.take_free();
        drop(yard);
        drop(free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Weak};

    /// Something in the context, and a way to see whether it is freed.
    fn thing(context: u64) -> (Kept<Arc<()>>, Weak<()>) {
        let value = Arc::new(());
        let weak = Arc::downgrade(&value);
        (Kept::new(value, context), weak)
    }

    fn is_there(weak: &Weak<()>) -> bool {
        weak.upgrade().is_some()
    }

    /// Tests run side by side: each has contexts of its own.
    fn context() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1 << 32);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    #[test]
    fn without_a_graph_things_are_freed_at_once() {
        let (kept, weak) = thing(context());
        drop(kept);
        assert!(!is_there(&weak));
    }

    #[test]
    fn what_a_graph_may_have_recorded_outlives_its_owner() {
        let context = context();
        let (before, before_weak) = thing(context);
        let graph = Holder::begin(context);
        let (within, within_weak) = thing(context);
        drop(within);
        graph.end();
        drop(before);
        assert!(is_there(&before_weak) && is_there(&within_weak));
        drop(graph);
        assert!(!is_there(&before_weak) && !is_there(&within_weak));
    }

    #[test]
    fn what_came_later_or_is_of_another_context_is_freed_at_once() {
        let (context, other) = (context(), context());
        let (elsewhere, elsewhere_weak) = thing(other);
        let graph = Holder::begin(context);
        graph.end();
        let (later, later_weak) = thing(context);
        drop((later, elsewhere));
        assert!(!is_there(&later_weak) && !is_there(&elsewhere_weak));
        drop(graph);
    }

    #[test]
    fn the_last_of_several_graphs_frees() {
        let context = context();
        let (kept, weak) = thing(context);
        let [first, second] = [(); 2].map(|()| Holder::begin(context));
        first.end();
        second.end();
        drop(kept);
        drop(first);
        assert!(is_there(&weak));
        drop(second);
        assert!(!is_there(&weak));
    }

    #[test]
    fn a_recording_holds_what_is_dropped_meanwhile_and_its_end_lets_go_of_what_came_after_older_graphs() {
        let context = context();
        let old = Holder::begin(context);
        old.end();
        let recording = Holder::begin(context);
        let (kept, weak) = thing(context);
        drop(kept);
        assert!(is_there(&weak));
        drop(recording); // It failed.
        assert!(!is_there(&weak), "the older graph does not have it");
        drop(old);
    }
}
