//! An allocation of global memory in pages: those that nobody wrote since the launch are shared, with the host and with
//! the other clusters of the launch, and take no room.

use super::Bytes;
use launch::{Contents, PAGE_BYTES};
use std::ops::Range;
use std::sync::Arc;

/// One page, as one cluster sees it.
#[derive(Clone, Debug)]
pub struct Page {
    base: Base,
    /// What the cluster that runs made of it, if it wrote.
    own: Option<Box<Bytes>>,
}

/// A page that others see too.
#[derive(Clone, Debug)]
enum Base {
    /// As the host filled it; all of it was written, or none.
    Lent { data: Arc<[u8]>, written: bool },
    /// As clusters before have left it.
    Shared(Arc<Bytes>),
}

impl Base {
    fn data(&self) -> &[u8] {
        match self {
            Base::Lent { data, .. } => data,
            Base::Shared(bytes) => bytes.data(),
        }
    }

    fn to_bytes(&self) -> Bytes {
        match self {
            Base::Lent { data, written } => Bytes::new(data.to_vec(), *written),
            Base::Shared(bytes) => (**bytes).clone(),
        }
    }

    fn is(&self, other: &Base) -> bool {
        match (self, other) {
            (Base::Lent { data, .. }, Base::Lent { data: other, .. }) => Arc::ptr_eq(data, other),
            (Base::Shared(bytes), Base::Shared(other)) => Arc::ptr_eq(bytes, other),
            _ => false,
        }
    }
}

impl Page {
    pub fn data(&self) -> &[u8] {
        self.own.as_ref().map_or_else(|| self.base.data(), |own| own.data())
    }

    pub fn is_written(&self, offset: usize, bytes: usize) -> bool {
        match (&self.own, &self.base) {
            (Some(own), _) => own.is_written(offset, bytes),
            (None, Base::Lent { written, .. }) => *written,
            (None, Base::Shared(page)) => page.is_written(offset, bytes),
        }
    }

    fn first_unwritten(&self, offset: usize, bytes: usize) -> Option<Range<usize>> {
        match (&self.own, &self.base) {
            (Some(own), _) => own.first_unwritten(offset, bytes),
            (None, Base::Lent { written, .. }) => (!written).then_some(offset..offset + bytes),
            (None, Base::Shared(page)) => page.first_unwritten(offset, bytes),
        }
    }

    /// A page of one's own, to write to.
    pub fn own(&mut self) -> &mut Bytes {
        let base = &self.base;
        self.own.get_or_insert_with(|| Box::new(base.to_bytes()))
    }

    fn share(&mut self) {
        if let Some(own) = self.own.take() {
            self.base = Base::Shared(Arc::new(*own));
        }
    }

    /// Takes over what another cluster made of its copy of this page.
    fn take_changes(&mut self, other: Page) {
        let Some(changed) = other.own else { return };
        match self.own {
            None if self.base.is(&other.base) => self.own = Some(changed),
            _ => self.own().take_changes(other.base.data(), &changed),
        }
    }

    fn into_data(self) -> Arc<[u8]> {
        match (self.own, self.base) {
            (Some(own), _) => own.data().into(),
            (None, Base::Lent { data, .. }) => data,
            (None, Base::Shared(bytes)) => bytes.data().into(),
        }
    }
}

/// The pages of an allocation, all full but the last.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    length: usize,
    pages: Vec<Page>,
}

impl Pages {
    /// What the host lends; `written`: does it count as written?
    pub fn lent(contents: &Contents, written: bool) -> Pages {
        let page = |data: &Arc<[u8]>| Page { base: Base::Lent { data: data.clone(), written }, own: None };
        Pages { length: contents.len(), pages: contents.pages().iter().map(page).collect() }
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn page(&self, number: usize) -> &Page {
        &self.pages[number]
    }

    pub fn page_mut(&mut self, number: usize) -> &mut Page {
        &mut self.pages[number]
    }

    /// Up to eight bytes, little-endian.
    pub fn read(&self, offset: usize, bytes: usize) -> u64 {
        let (page, at) = (offset / PAGE_BYTES, offset % PAGE_BYTES);
        let mut value = [0; 8];
        match self.pages[page].data().get(at..at + bytes) {
            Some(found) => value[..bytes].copy_from_slice(found),
            None => value[..bytes].copy_from_slice(&self.copy(offset, bytes)),
        }
        u64::from_le_bytes(value)
    }

    /// The pages of a range, and the part of each.
    fn parts(offset: usize, bytes: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
        let end = offset + bytes;
        (offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES)).map(move |page| {
            let start = page * PAGE_BYTES;
            (page, offset.max(start) - start..end.min(start + PAGE_BYTES) - start)
        })
    }

    pub fn copy(&self, offset: usize, bytes: usize) -> Vec<u8> {
        let mut copied = vec![0; bytes];
        self.copy_to(offset, &mut copied);
        copied
    }

    /// Fills `into` with the bytes from an offset on.
    pub fn copy_to(&self, offset: usize, into: &mut [u8]) {
        let mut rest = into;
        for (page, part) in Pages::parts(offset, rest.len()) {
            let (now, later) = rest.split_at_mut(part.len());
            now.copy_from_slice(&self.pages[page].data()[part]);
            rest = later;
        }
    }

    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        let mut rest = bytes;
        for (page, part) in Pages::parts(offset, bytes.len()) {
            let (now, later) = rest.split_at(part.len());
            self.pages[page].own().write_all(part.start, now);
            rest = later;
        }
    }

    pub fn mark_written(&mut self, offset: usize, bytes: usize) {
        for (page, part) in Pages::parts(offset, bytes) {
            if !self.pages[page].is_written(part.start, part.len()) {
                self.pages[page].own().mark_written(part.start, part.len());
            }
        }
    }

    pub fn first_unwritten(&self, offset: usize, bytes: usize) -> Option<Range<usize>> {
        let gap = |(page, part): (usize, Range<usize>)| {
            let found = self.pages[page].first_unwritten(part.start, part.len())?;
            Some(page * PAGE_BYTES + found.start..page * PAGE_BYTES + found.end)
        };
        Pages::parts(offset, bytes).find_map(gap)
    }

    /// Makes copies cheap: what was written here is shared from now on.
    pub fn share(&mut self) {
        self.pages.iter_mut().for_each(Page::share);
    }

    /// Takes over what a cluster wrote, whose pages were a copy of the shared ones.
    pub fn take_changes(&mut self, after: Pages) {
        self.pages.iter_mut().zip(after.pages).for_each(|(page, after)| page.take_changes(after));
    }

    pub fn into_contents(self) -> Contents {
        Contents::from_pages(self.pages.into_iter().map(Page::into_data).collect())
    }
}

impl Bytes {
    /// Takes over the bytes in which `after` differs from `before`, and what is written there.
    fn take_changes(&mut self, before: &[u8], after: &Bytes) {
        for (at, (old, new)) in before.iter().zip(&after.data).enumerate() {
            if old != new {
                self.data[at] = *new;
            }
        }
        self.written.unite(&after.written);
    }
}
