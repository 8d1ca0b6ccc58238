//! Tables with a row for each of some items, built column by column.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, StringArray, UInt32Array, UInt64Array,
};
use pyo3::prelude::*;

use crate::arrow::{Names, Table};

/// The columns of a table so far, and the items of its rows.
pub(crate) struct Rows<I> {
    items: I,
    columns: Vec<(&'static str, ArrayRef)>,
}

impl<I: Iterator + Clone> Rows<I> {
    /// A table that has no columns yet.
    pub(crate) fn of(items: impl IntoIterator<IntoIter = I>) -> Self {
        Self { items: items.into_iter(), columns: Vec::new() }
    }

    /// Adds a column with a value of each item; its type is that of the values.
    pub(crate) fn column<V: Value>(mut self, name: &'static str, value: impl FnMut(I::Item) -> V) -> Self {
        let values: Vec<V> = self.items.clone().map(value).collect();
        self.columns.push((name, V::array(values)));
        self
    }

    /// Adds a column with a name of each item, of which few are distinct; null for `None`.
    pub(crate) fn names<N: Into<Option<&'static str>>>(
        mut self,
        column: &'static str,
        name: impl FnMut(I::Item) -> N,
    ) -> Self {
        let mut names = Names::with_capacity(self.items.size_hint().0);
        self.items.clone().map(name).for_each(|name| names.push_optional(name.into()));
        self.columns.push((column, names.finish()));
        self
    }

    /// The table.
    pub(crate) fn finish(self) -> PyResult<Table> {
        Table::new(self.columns)
    }
}

/// A value of a column; an `Option` may be null.
pub(crate) trait Value: Sized {
    /// The column with these values.
    fn array(values: Vec<Self>) -> ArrayRef;
}

macro_rules! values {
    ($($value:ty: $array:ty),+ $(,)?) => {
        $(impl Value for $value {
            fn array(values: Vec<Self>) -> ArrayRef {
                Arc::new(<$array>::from(values))
            }
        })+
    };
}

values! {
    bool: BooleanArray,
    i32: Int32Array,
    Option<i32>: Int32Array,
    i64: Int64Array,
    Option<i64>: Int64Array,
    u32: UInt32Array,
    Option<u32>: UInt32Array,
    u64: UInt64Array,
    Option<u64>: UInt64Array,
    f64: Float64Array,
    Option<f64>: Float64Array,
    &str: StringArray,
    Option<&str>: StringArray,
    Option<String>: StringArray,
}
