//! Loops over all threads: `items.par_iter().map(...).collect()`.
//!
//! ```text
//!  items --divide--> parts --> threads --in order--> collection
//! ```
//!
//! The items are divided into a fixed number of parts, each a job for the threads of the current pool. So what is compiled
//! anew for each loop is the loop. rayon's own iterators compile their division, stealing, and handling of panics with it,
//! which was more than a quarter of the code of this crate before optimization.

use std::ops::Range;
use std::sync::Arc;

/// What loops over all threads need.
pub(crate) mod prelude {
    pub(crate) use crate::parallel::iter::{Indexed as _, IntoParallel as _, Lend as _, Parallel};
}

/// Parts for each thread: some take longer than others.
const PARTS: usize = 16;

/// What is done with a part.
type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Does all jobs on all threads, and the first one here.
fn run(mut jobs: Vec<Job>) {
    let Some(first) = jobs.pop() else { return };
    if jobs.is_empty() {
        return first();
    }
    rayon::in_place_scope(|scope| {
        for job in jobs {
            scope.spawn(move |_| job());
        }
        first();
    });
}

/// Number of parts, at least one, and items of each but the last.
fn division(items: usize) -> (usize, usize) {
    let size = items.div_ceil(PARTS * rayon::current_num_threads()).max(1);
    (items.div_ceil(size).max(1), size)
}

/// Items for all threads.
pub(crate) trait Parallel: Sized + Send {
    /// What is iterated over.
    type Item: Send;

    /// The items, one after the other.
    type Items: Iterator<Item = Self::Item>;

    /// Number of items to divide.
    fn count(&self) -> usize;

    /// Splits off the items from a number on.
    fn split_off(&mut self, at: usize) -> Self;

    /// The items, for one thread.
    fn items(self) -> Self::Items;

    /// Changes each item.
    fn map<R: Send, F: Fn(Self::Item) -> R + Send + Sync>(self, change: F) -> Map<Self, F> {
        Map { items: self, change: Arc::new(change) }
    }

    /// Replaces each item by any number of others.
    fn flat_map<R, F>(self, change: F) -> FlatMap<Self, F>
    where
        R: IntoIterator<Item: Send>,
        F: Fn(Self::Item) -> R + Send + Sync,
    {
        FlatMap(Map { items: self, change: Arc::new(change) })
    }

    /// Changes each item, and leaves out what becomes nothing.
    fn filter_map<R: Send, F: Fn(Self::Item) -> Option<R> + Send + Sync>(self, change: F) -> FlatMap<Self, F> {
        self.flat_map(change)
    }

    /// The items of which something holds.
    fn filter(self, holds: impl Fn(&Self::Item) -> bool + Send + Sync) -> impl Parallel<Item = Self::Item> {
        self.filter_map(move |item| holds(&item).then_some(item))
    }

    /// The items of each item.
    fn flatten(self) -> impl Parallel<Item = <Self::Item as IntoIterator>::Item>
    where
        Self::Item: IntoIterator<Item: Send>,
    {
        self.flat_map(|items| items)
    }

    /// Does something with each part; returns the results in the order of the parts.
    fn of_parts<R: Send>(mut self, take: impl Fn(Self::Items) -> R + Sync) -> Vec<R> {
        let (count, size) = division(self.count());
        let mut done = Vec::with_capacity(count);
        done.resize_with(count, || None);
        let mut jobs: Vec<Job> = Vec::with_capacity(count);
        let (take, mut first) = (&take, Some(&mut done[..]));
        while let Some((slot, before)) = first.take().and_then(<[Option<R>]>::split_last_mut) {
            let part = self.split_off(before.len() * size);
            jobs.push(Box::new(move || *slot = Some(take(part.items()))));
            first = Some(before);
        }
        run(jobs);
        done.into_iter().flatten().collect()
    }

    /// All items, in order.
    fn collect<C: FromParts<Self::Item>>(self) -> C {
        C::from_parts(self.of_parts(|items| {
            let mut part = Vec::with_capacity(items.size_hint().0);
            for item in items {
                part.push(item);
            }
            part
        }))
    }

    /// The first and the second of all pairs.
    fn unzip<A, B>(self) -> (Vec<A>, Vec<B>)
    where
        Self: Parallel<Item = (A, B)>,
    {
        self.collect::<Vec<_>>().into_iter().unzip()
    }

    /// Does something with each item.
    fn for_each(self, action: impl Fn(Self::Item) + Sync) {
        self.of_parts(|items| {
            for item in items {
                action(item);
            }
        });
    }

    /// Does something with each item, until it fails.
    fn try_for_each<E: Send>(self, action: impl Fn(Self::Item) -> Result<(), E> + Sync) -> Result<(), E> {
        self.of_parts(|mut items| items.try_for_each(&action)).into_iter().collect()
    }

    /// Whether something holds for any item.
    fn any(self, holds: impl Fn(Self::Item) -> bool + Sync) -> bool {
        self.of_parts(|mut items| items.any(&holds)).contains(&true)
    }

    /// Adds the items of each part to `first()`, one after the other; returns what became of the parts.
    fn fold<R: Send>(self, first: impl Fn() -> R + Sync, add: impl Fn(R, Self::Item) -> R + Sync) -> Vec<R> {
        self.of_parts(|items| items.fold(first(), &add))
    }

    /// Joins all items, from `first()` on.
    fn reduce(
        self,
        first: impl Fn() -> Self::Item + Sync,
        join: impl Fn(Self::Item, Self::Item) -> Self::Item + Sync,
    ) -> Self::Item {
        self.fold(&first, &join).into_iter().reduce(&join).unwrap_or_else(first)
    }
}

/// Items that have numbers.
pub(crate) trait Indexed: Parallel {
    /// Pairs of the items with the same number.
    fn zip<P: IntoParallel<Iter: Indexed>>(self, other: P) -> Zip<Self, P::Iter> {
        Zip(self, other.into_par_iter())
    }

    /// The items with their numbers.
    fn enumerate(self) -> Zip<Numbers<usize>, Self> {
        Zip(Numbers(0..self.count()), self)
    }
}

/// What a loop over all threads can run over.
pub(crate) trait IntoParallel {
    /// The loop.
    type Iter: Parallel;

    /// All items, for all threads.
    fn into_par_iter(self) -> Self::Iter;
}

impl<P: Parallel> IntoParallel for P {
    type Iter = P;

    fn into_par_iter(self) -> P {
        self
    }
}

impl<'a, T: Sync> IntoParallel for &'a Vec<T> {
    type Iter = &'a [T];

    fn into_par_iter(self) -> &'a [T] {
        self
    }
}

impl<'a, T: Send> IntoParallel for &'a mut Vec<T> {
    type Iter = &'a mut [T];

    fn into_par_iter(self) -> &'a mut [T] {
        self
    }
}

/// Slices, which lend their items to all threads.
pub(crate) trait Lend {
    /// What they lend.
    type Item;

    /// All items, for all threads.
    fn par_iter(&self) -> &[Self::Item];

    /// All items, to be changed, for all threads.
    fn par_iter_mut(&mut self) -> &mut [Self::Item];
}

impl<T> Lend for [T] {
    type Item = T;

    fn par_iter(&self) -> &[T] {
        self
    }

    fn par_iter_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<'s, T: Sync> Parallel for &'s [T] {
    type Item = &'s T;
    type Items = std::slice::Iter<'s, T>;

    fn count(&self) -> usize {
        self.len()
    }

    fn split_off(&mut self, at: usize) -> Self {
        let (rest, part) = self.split_at(at);
        *self = rest;
        part
    }

    fn items(self) -> Self::Items {
        self.iter()
    }
}

impl<T: Sync> Indexed for &[T] {}

impl<'s, T: Send> Parallel for &'s mut [T] {
    type Item = &'s mut T;
    type Items = std::slice::IterMut<'s, T>;

    fn count(&self) -> usize {
        self.len()
    }

    fn split_off(&mut self, at: usize) -> Self {
        let (rest, part) = std::mem::take(self).split_at_mut(at);
        *self = rest;
        part
    }

    fn items(self) -> Self::Items {
        self.iter_mut()
    }
}

impl<T: Send> Indexed for &mut [T] {}

impl<T: Send> Parallel for Vec<T> {
    type Item = T;
    type Items = std::vec::IntoIter<T>;

    fn count(&self) -> usize {
        self.len()
    }

    fn split_off(&mut self, at: usize) -> Self {
        Self::split_off(self, at)
    }

    fn items(self) -> Self::Items {
        self.into_iter()
    }
}

impl<T: Send> Indexed for Vec<T> {}

/// Consecutive numbers. Ranges themselves are iterators, whose methods have the same names.
pub(crate) struct Numbers<T>(Range<T>);

macro_rules! numbers {
    ($type:ty) => {
        impl IntoParallel for Range<$type> {
            type Iter = Numbers<$type>;

            fn into_par_iter(self) -> Numbers<$type> {
                Numbers(self)
            }
        }

        impl Parallel for Numbers<$type> {
            type Item = $type;
            type Items = Range<$type>;

            fn count(&self) -> usize {
                self.0.end.saturating_sub(self.0.start) as usize
            }

            fn split_off(&mut self, at: usize) -> Self {
                let middle = self.0.start + at as $type;
                Self(middle..std::mem::replace(&mut self.0.end, middle))
            }

            fn items(self) -> Range<$type> {
                self.0
            }
        }

        impl Indexed for Numbers<$type> {}
    };
}

numbers!(u32);
numbers!(u64);
numbers!(usize);

/// See [`Parallel::map`].
pub(crate) struct Map<P, F> {
    items: P,
    change: Arc<F>,
}

impl<P: Parallel, R: Send, F: Fn(P::Item) -> R + Send + Sync> Parallel for Map<P, F> {
    type Item = R;
    type Items = Map<P::Items, F>;

    fn count(&self) -> usize {
        self.items.count()
    }

    fn split_off(&mut self, at: usize) -> Self {
        Self { items: self.items.split_off(at), change: self.change.clone() }
    }

    fn items(self) -> Self::Items {
        Map { items: self.items.items(), change: self.change }
    }
}

impl<P: Indexed, R: Send, F: Fn(P::Item) -> R + Send + Sync> Indexed for Map<P, F> {}

impl<I: Iterator, R, F: Fn(I::Item) -> R> Iterator for Map<I, F> {
    type Item = R;

    #[inline]
    fn next(&mut self) -> Option<R> {
        match self.items.next() {
            Some(item) => Some((self.change)(item)),
            None => None,
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}

/// See [`Parallel::flat_map`].
pub(crate) struct FlatMap<P, F>(Map<P, F>);

impl<P: Parallel, R: IntoIterator<Item: Send>, F: Fn(P::Item) -> R + Send + Sync> Parallel for FlatMap<P, F> {
    type Item = R::Item;
    type Items = std::iter::Flatten<Map<P::Items, F>>;

    fn count(&self) -> usize {
        self.0.items.count()
    }

    fn split_off(&mut self, at: usize) -> Self {
        let items = self.0.items.split_off(at);
        Self(Map { items, change: self.0.change.clone() })
    }

    fn items(self) -> Self::Items {
        Map { items: self.0.items.items(), change: self.0.change }.flatten()
    }
}

/// See [`Indexed::zip`].
pub(crate) struct Zip<A, B>(A, B);

impl<A: Indexed, B: Indexed> Parallel for Zip<A, B> {
    type Item = (A::Item, B::Item);
    type Items = Zip<A::Items, B::Items>;

    fn count(&self) -> usize {
        self.0.count().min(self.1.count())
    }

    fn split_off(&mut self, at: usize) -> Self {
        Self(self.0.split_off(at), self.1.split_off(at))
    }

    fn items(self) -> Self::Items {
        Zip(self.0.items(), self.1.items())
    }
}

impl<A: Indexed, B: Indexed> Indexed for Zip<A, B> {}

impl<A: Iterator, B: Iterator> Iterator for Zip<A, B> {
    type Item = (A::Item, B::Item);

    #[inline]
    fn next(&mut self) -> Option<(A::Item, B::Item)> {
        Some((self.0.next()?, self.1.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.size_hint().0.min(self.1.size_hint().0), None)
    }
}

/// A collection of what the threads found.
pub(crate) trait FromParts<T>: Sized {
    /// Puts the parts together.
    fn from_parts(parts: Vec<Vec<T>>) -> Self;
}

impl<T> FromParts<T> for Vec<T> {
    fn from_parts(mut parts: Vec<Self>) -> Self {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let mut all = Self::with_capacity(parts.iter().map(Self::len).sum());
        for part in &mut parts {
            all.append(part);
        }
        all
    }
}

impl<T, E> FromParts<Result<T, E>> for Result<Vec<T>, E> {
    fn from_parts(parts: Vec<Vec<Result<T, E>>>) -> Self {
        let mut all = Vec::new();
        for part in parts {
            for item in part {
                all.push(item?);
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::pool;

    #[test]
    fn loops_keep_the_order_for_any_number_of_items() {
        pool::new(3).unwrap().install(|| {
            for count in [0, 1, 2, 47, 48, 49, 1000] {
                let mut items: Vec<usize> = (0..count).collect();
                let expected: Vec<usize> = items.iter().map(|item| item + 1).collect();
                let names: Vec<String> = items.iter().map(ToString::to_string).collect();
                items.par_iter_mut().for_each(|item| *item += 1);
                assert_eq!(items, expected);
                assert_eq!((0..count).into_par_iter().map(|item| item + 1).collect::<Vec<_>>(), expected);
                let zipped: Vec<(usize, String)> = Indexed::zip(items.clone(), names.clone()).collect();
                assert_eq!(zipped, Iterator::zip(expected.iter().copied(), names).collect::<Vec<_>>());
                let numbered: Vec<(usize, &usize)> = items.par_iter().enumerate().collect();
                assert!(numbered.iter().all(|(number, item)| number + 1 == **item));
                let odd: Vec<usize> = items.par_iter().flat_map(|&item| (item % 2 == 1).then_some(item)).collect();
                assert_eq!(odd, expected.iter().copied().filter(|item| item % 2 == 1).collect::<Vec<_>>());
                let sum = items.par_iter().fold(|| 0, |sum, item| sum + item).into_iter().sum::<usize>();
                assert_eq!(sum, expected.iter().sum::<usize>());
                let below =
                    |limit: usize| items.par_iter().map(move |&item| if item < limit { Ok(item) } else { Err(item) });
                assert_eq!(below(2000).collect::<Result<Vec<_>, _>>(), Ok(expected.clone()));
                assert_eq!(below(40).collect::<Result<Vec<_>, _>>().err(), (count >= 40).then_some(40));
                assert_eq!(items.par_iter().any(|&item| item == 900), count >= 900);
            }
        });
    }

    #[test]
    fn a_part_that_panics_ends_the_loop() {
        let in_pool = || (0..99usize).into_par_iter().for_each(|i| assert_ne!(i, 50, "fifty"));
        let error = crate::parallel::failure::guard(|| pool::new(3).unwrap().install(in_pool));
        assert!(error.unwrap_err().to_string().contains("fifty"));
    }
}
