//! Operations on files that are not complete, of MPI and others.

use rustc_hash::FxHashMap;

use crate::format::Call;
use crate::functions::Class;

/// Operations on files that are not complete.
#[derive(Debug, Default)]
pub(crate) struct Files {
    count: u64,
    blocking: u64,
    /// By request, and by file for those that begin and end with two calls.
    requests: FxHashMap<u64, u64>,
    split: FxHashMap<u64, u64>,
}

impl Files {
    /// Begins an operation; returns its matching id, counted for each process.
    pub(crate) fn start(&mut self, class: Class, call: &Call) -> u64 {
        self.count += 1;
        match class {
            Class::Iio | Class::PosixAio | Class::PosixAioList => drop(self.requests.insert(call.id, self.count)),
            Class::IoBegin => drop(self.split.insert(u64::from(call.object), self.count)),
            _ => self.blocking = self.count,
        }
        self.count
    }

    /// Ends the operation of a request or, for those that begin and end with two calls, of a file.
    pub(crate) fn end(&mut self, class: Class, key: u64) -> Option<u64> {
        match class {
            Class::Iio | Class::PosixAioEnd => self.requests.remove(&key),
            Class::IoEnd => self.split.remove(&key),
            _ => Some(self.blocking),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_end_where_they_were_begun() {
        let mut files = Files::default();
        let call = |id, object| Call { object, id, ..Call::default() };
        assert_eq!(files.start(Class::Io, &call(0, 1)), 1);
        assert_eq!(files.start(Class::Iio, &call(7, 1)), 2);
        assert_eq!(files.start(Class::IoBegin, &call(0, 1)), 3);
        assert_eq!(files.end(Class::Iio, 7), Some(2));
        assert_eq!(files.end(Class::Iio, 7), None);
        assert_eq!(files.end(Class::IoEnd, 1), Some(3));
        assert_eq!(files.start(Class::Io, &call(0, 1)), 4);
        assert_eq!(files.end(Class::Io, 1), Some(4));
    }
}
