//! Shreds a column into leaves: values, definition levels (what is null) and repetition levels (where lists begin).
//!
//! Source of the levels: Melnik et al., "Dremel: interactive analysis of web-scale datasets", 2010, section 4.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::{DataType, Field};
use parquet::schema::types::ColumnDescPtr;

use crate::parts::{Order, Part};
use crate::schema::Kind;
use crate::values::{Distinct, NONE, Values};
use crate::{Error, Result};

/// A column in a group of rows.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) leaves: Vec<Leaf>,
    /// Of a nested column, the order of the parts of each leaf.
    pub(crate) order: Option<Order>,
}

/// A leaf of a column in a group of rows.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) descriptor: ColumnDescPtr,
    pub(crate) kind: Kind,
    /// Of a nested column, the entries of different rows.
    pub(crate) parts: Vec<Part>,
    /// Definition levels: how much of the path to the leaf is present, one per value or null.
    pub(crate) definition: Levels,
    /// Repetition levels: the list of the path that continues, in the same order; empty without lists.
    pub(crate) repetition: Vec<u8>,
    pub(crate) values: Values,
}

/// Levels, most of which are the highest.
#[derive(Debug)]
pub(crate) struct Levels {
    pub(crate) highest: u8,
    pub(crate) len: usize,
    /// All levels, unless all are the highest.
    pub(crate) each: Option<Vec<u8>>,
}

impl Levels {
    fn push(&mut self, level: u8) {
        if level != self.highest || self.each.is_some() {
            self.each().push(level);
        }
        self.len += 1;
    }

    fn extend_highest(&mut self, count: usize) {
        self.len += count;
        if let Some(each) = &mut self.each {
            each.resize(self.len, self.highest);
        }
    }

    /// Append 1 for each value and 0 for each null.
    fn extend(&mut self, nulls: &NullBuffer) {
        let len = self.len + nulls.len();
        let each = self.each();
        each.reserve(nulls.len().next_multiple_of(u64::BITS as usize));
        for bits in nulls.inner().bit_chunks().iter_padded() {
            each.extend((0..u64::BITS).map(|bit| (bits >> bit & 1) as u8));
        }
        each.truncate(len);
        self.len = len;
    }

    fn each(&mut self) -> &mut Vec<u8> {
        self.each.get_or_insert_with(|| vec![self.highest; self.len])
    }
}

impl Leaf {
    fn new(descriptor: ColumnDescPtr, kind: Kind, repeats: bool, rows: usize) -> Self {
        let values = match kind {
            Kind::Double if !repeats => Values::Doubles(Vec::with_capacity(rows)),
            Kind::Signed32 | Kind::Unsigned32 => Values::Integers(Vec::with_capacity(rows)),
            _ => Values::Numbered { codes: Vec::with_capacity(rows), distinct: Distinct::new(kind) },
        };
        let definition = Levels { highest: descriptor.max_def_level() as u8, len: 0, each: None };
        Self { descriptor, kind, parts: Vec::new(), definition, repetition: Vec::new(), values }
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        match &self.values {
            Values::Doubles(values) => values.len(),
            Values::Integers(values) => values.len(),
            Values::Numbered { codes, .. } => codes.len(),
        }
    }

    /// Append a value or a null.
    fn push(&mut self, level: Level, value: Option<(&dyn Array, usize)>) {
        self.definition.push(level.definition);
        if self.descriptor.max_rep_level() > 0 {
            self.repetition.push(level.repetition);
        }
        let Some((array, row)) = value else { return };
        match &mut self.values {
            Values::Doubles(values) => values.push(array.as_primitive::<Float64Type>().value(row)),
            Values::Integers(values) => extend_integers(values, array, std::iter::once(row)),
            Values::Numbered { codes, distinct } => codes.push(number(self.kind, distinct, array, row)),
        }
    }

    /// Begins a part.
    fn begin_part(&mut self) {
        let (levels, values) = (self.definition.len, self.len());
        self.parts.push(Part { levels: levels..levels, values: values..values });
    }

    /// Ends the part that was begun last.
    fn end_part(&mut self) {
        let (levels, values) = (self.definition.len, self.len());
        if let Some(part) = self.parts.last_mut() {
            (part.levels.end, part.values.end) = (levels, values);
        }
    }

    /// Append a column that is not nested.
    fn append(&mut self, array: &dyn Array) -> Result<()> {
        match array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
            None => {
                self.definition.extend_highest(array.len());
                match (&mut self.values, array.as_primitive_opt::<Float64Type>()) {
                    (Values::Doubles(values), Some(array)) => values.extend_from_slice(array.values()),
                    _ => self.append_values(array, 0..array.len()),
                }
            }
            Some(_) if self.definition.highest == 0 => return Err(Error::Null(self.descriptor.name().to_owned())),
            Some(nulls) => {
                self.definition.extend(&nulls);
                match (&mut self.values, array.as_primitive_opt::<Float64Type>()) {
                    (Values::Doubles(values), Some(array)) => extend_valid(values, array.values(), &nulls),
                    _ if nulls.null_count() < array.len() => self.append_values(array, nulls.valid_indices()),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Append the values of some rows; real numbers only if they are a dictionary.
    fn append_values(&mut self, array: &dyn Array, rows: impl Iterator<Item = usize>) {
        match &mut self.values {
            Values::Doubles(values) => {
                let kept = array.as_any_dictionary();
                let (keys, source) = (keys(kept.keys()), kept.values().as_primitive::<Float64Type>().values());
                values.extend(rows.map(|row| source[keys[row] as usize]));
            }
            Values::Integers(values) => {
                if let Some(kept) = array.as_any_dictionary_opt() {
                    let (keys, mut source) = (keys(kept.keys()), Vec::new());
                    extend_integers(&mut source, kept.values(), 0..kept.values().len());
                    values.extend(rows.map(|row| source[keys[row] as usize]));
                } else {
                    extend_integers(values, array, rows);
                }
            }
            Values::Numbered { codes, distinct } => {
                if let Some(kept) = array.as_any_dictionary_opt() {
                    let mut known = vec![NONE; kept.values().len()];
                    let keys = keys(kept.keys());
                    codes.extend(rows.map(|row| {
                        let known = &mut known[keys[row] as usize];
                        if *known == NONE {
                            *known = number(self.kind, distinct, kept.values(), keys[row] as usize);
                        }
                        *known
                    }));
                } else {
                    codes.extend(rows.map(|row| number(self.kind, distinct, array, row)));
                }
            }
        }
    }
}

/// Append integers of 32 bits.
fn extend_integers(values: &mut Vec<u32>, array: &dyn Array, rows: impl Iterator<Item = usize>) {
    if let Some(numbers) = array.as_primitive_opt::<UInt32Type>() {
        values.extend(rows.map(|row| numbers.values()[row]));
    } else {
        let numbers = array.as_primitive::<Int32Type>().values();
        values.extend(rows.map(|row| numbers[row].cast_unsigned()));
    }
}

/// Append the values that are not null. Nulls are often scattered, so that it is quicker to write all values and to
/// overwrite the nulls.
fn extend_valid(values: &mut Vec<f64>, source: &[f64], nulls: &NullBuffer) {
    let mut end = values.len();
    values.resize(end + source.len(), 0.0);
    for (&value, is_valid) in source.iter().zip(nulls) {
        values[end] = value;
        end += usize::from(is_valid);
    }
    values.truncate(end);
}

/// Shred a column into leaves.
///
/// # Parameters
/// `field` is the column of the file. `arrays` are its pieces, which may be dictionaries of the file's type. `repeats`
/// tells whether real numbers repeat.
pub(crate) fn shred(
    field: &Field,
    arrays: &[ArrayRef],
    descriptors: &[ColumnDescPtr],
    repeats: bool,
) -> Result<Column> {
    let rows = arrays.iter().map(Array::len).sum();
    let mut kinds = Vec::new();
    kinds_of(field.data_type(), &mut kinds);
    let is_nested = Kind::of(field.data_type()).is_none();
    let room = if is_nested { 0 } else { rows };
    let mut leaves: Vec<Leaf> =
        descriptors.iter().zip(kinds).map(|(leaf, kind)| Leaf::new(leaf.clone(), kind, repeats, room)).collect();
    let mut order = Order::default();
    for array in arrays {
        if !same(field.data_type(), array.data_type()) {
            return Err(Error::Type(field.name().clone(), array.data_type().clone()));
        }
        match leaves.as_mut_slice() {
            [leaf] if !is_nested => leaf.append(array.as_ref())?,
            leaves => nested(field, array.as_ref(), leaves, &mut order),
        }
    }
    Ok(Column { leaves, order: is_nested.then_some(order) })
}

/// Whether two types have the same values, disregarding dictionaries.
fn same(one: &DataType, other: &DataType) -> bool {
    match (one, other) {
        // Some libraries give a column without values the null type.
        (_, DataType::Null) => true,
        (DataType::Dictionary(_, values), other) => same(values, other),
        (one, DataType::Dictionary(_, values)) => same(one, values),
        (DataType::List(one), DataType::List(other)) => same(one.data_type(), other.data_type()),
        (DataType::Struct(one), DataType::Struct(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| same(one.data_type(), other.data_type()))
        }
        (one, other) => one == other,
    }
}

fn kinds_of(kind: &DataType, kinds: &mut Vec<Kind>) {
    match kind {
        DataType::List(element) => kinds_of(element.data_type(), kinds),
        DataType::Struct(fields) => fields.iter().for_each(|field| kinds_of(field.data_type(), kinds)),
        kind => kinds.extend(Kind::of(kind)),
    }
}

/// Append a nested column. A value of a dictionary is shredded once, however often it occurs.
fn nested(field: &Field, array: &dyn Array, leaves: &mut [Leaf], order: &mut Order) {
    let mut add = |value: Option<(&dyn Array, usize)>| {
        let number = leaves[0].parts.len() as u32;
        leaves.iter_mut().for_each(Leaf::begin_part);
        match value {
            Some((array, row)) => visit(field, array, row, Level::default(), leaves),
            None => absent(field, Level::default(), leaves),
        };
        leaves.iter_mut().for_each(Leaf::end_part);
        number
    };
    let Some(kept) = array.as_any_dictionary_opt() else {
        for row in 0..array.len() {
            order.push(add(Some((array, row))), 1);
        }
        return;
    };
    let mut known = vec![NONE; kept.values().len()];
    let mut null = NONE;
    let (keys, nulls) = (keys(kept.keys()), kept.keys().nulls());
    let is_null = |row: usize| nulls.is_some_and(|nulls| nulls.is_null(row));
    let mut row = 0;
    while let Some(&key) = keys.get(row) {
        if is_null(row) {
            if null == NONE {
                null = add(None);
            }
            order.push(null, 1);
            row += 1;
            continue;
        }
        // Null keys may have the same value: to look beyond them would visit them again and again.
        let times = (row..keys.len()).take_while(|&next| keys[next] == key && !is_null(next)).count();
        row += times;
        let known = &mut known[key as usize];
        if *known == NONE {
            *known = add(Some((kept.values().as_ref(), key as usize)));
        }
        order.push(*known, times);
    }
}

/// The position in a nested value.
#[derive(Clone, Copy, Default)]
struct Level {
    /// The repetition level of the list that continues.
    repetition: u8,
    /// Number of enclosing lists.
    lists: u8,
    definition: u8,
}

/// Append a value of a nested column; returns how many leaves it has.
fn visit(field: &Field, array: &dyn Array, row: usize, mut level: Level, leaves: &mut [Leaf]) -> usize {
    if array.is_null(row) {
        return absent(field, level, leaves);
    }
    if let DataType::Dictionary(..) = array.data_type() {
        let kept = array.as_any_dictionary();
        let key = keys(&kept.keys().slice(row, 1))[0];
        return visit(field, kept.values().as_ref(), key as usize, level, leaves);
    }
    level.definition += u8::from(field.is_nullable());
    match array.data_type() {
        DataType::List(_) => {
            let DataType::List(element) = plain(field.data_type()) else { unreachable!("checked before") };
            let list = array.as_list::<i32>();
            let (begin, end) = (list.value_offsets()[row] as usize, list.value_offsets()[row + 1] as usize);
            if begin == end {
                return absent(field, level, leaves);
            }
            level.definition += 1;
            level.lists += 1;
            let mut count = 0;
            for row in begin..end {
                count = visit(element, list.values().as_ref(), row, level, leaves);
                level.repetition = level.lists;
            }
            count
        }
        DataType::Struct(_) => {
            let DataType::Struct(fields) = plain(field.data_type()) else { unreachable!("checked before") };
            let parts = array.as_struct();
            fields
                .iter()
                .zip(parts.columns())
                .fold(0, |leaf, (field, part)| leaf + visit(field, part.as_ref(), row, level, &mut leaves[leaf..]))
        }
        _ => {
            leaves[0].push(level, Some((array, row)));
            1
        }
    }
}

/// Append a null to all leaves of a field; returns their number.
fn absent(field: &Field, level: Level, leaves: &mut [Leaf]) -> usize {
    let mut kinds = Vec::new();
    kinds_of(field.data_type(), &mut kinds);
    for leaf in &mut leaves[..kinds.len()] {
        leaf.push(level, None);
    }
    kinds.len()
}

fn plain(kind: &DataType) -> &DataType {
    match kind {
        DataType::Dictionary(_, values) => plain(values),
        kind => kind,
    }
}

/// The keys of a dictionary; null keys have any value.
fn keys(keys: &dyn Array) -> Vec<u32> {
    macro_rules! keys {
        ($($kind:ident: $native:ident),*) => {
            match keys.data_type() {
                $(DataType::$kind => {
                    keys.as_primitive::<$native>().values().iter().map(|&key| key.as_usize() as u32).collect()
                })*
                kind => unreachable!("{kind} is no type of keys"),
            }
        };
    }
    keys!(
        Int8: Int8Type, UInt8: UInt8Type, Int16: Int16Type, UInt16: UInt16Type, Int32: Int32Type, UInt32: UInt32Type,
        Int64: Int64Type, UInt64: UInt64Type
    )
}

/// The number of a value among those that are distinct.
fn number(kind: Kind, distinct: &mut Distinct, array: &dyn Array, row: usize) -> u32 {
    match kind {
        Kind::Bool => distinct.number(u64::from(array.as_boolean().value(row))),
        Kind::Signed32 => distinct.number(i64::from(array.as_primitive::<Int32Type>().value(row)) as u64),
        Kind::Unsigned32 => distinct.number(u64::from(array.as_primitive::<UInt32Type>().value(row))),
        Kind::Signed64 => distinct.number(array.as_primitive::<Int64Type>().value(row) as u64),
        Kind::Unsigned64 => distinct.number(array.as_primitive::<UInt64Type>().value(row)),
        Kind::Double => distinct.number(array.as_primitive::<Float64Type>().value(row).to_bits()),
        Kind::Text => distinct.text(array.as_string::<i32>().value(row)),
    }
}
