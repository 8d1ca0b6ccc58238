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
        self.columns.push((name, V::array(&mut self.items.clone().map(value))));
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
    /// The column with these values. Only this is compiled for each type, not for each column.
    fn array(values: &mut dyn Iterator<Item = Self>) -> ArrayRef;
}

macro_rules! values {
    ($($value:ty: $array:ty),+ $(,)?) => {
        $(
            impl Value for $value {
                fn array(values: &mut dyn Iterator<Item = Self>) -> ArrayRef {
                    Arc::new(<$array>::from_iter_values(values))
                }
            }

            impl Value for Option<$value> {
                fn array(values: &mut dyn Iterator<Item = Self>) -> ArrayRef {
                    Arc::new(values.collect::<$array>())
                }
            }
        )+
    };
}

values! {
    i32: Int32Array,
    i64: Int64Array,
    u32: UInt32Array,
    u64: UInt64Array,
    f64: Float64Array,
    &str: StringArray,
    String: StringArray,
}

impl Value for bool {
    fn array(values: &mut dyn Iterator<Item = Self>) -> ArrayRef {
        Arc::new(values.map(Some).collect::<BooleanArray>())
    }
}
