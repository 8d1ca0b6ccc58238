//! Records of any kind as one Arrow table: one nullable column for each field that occurs.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    ArrayBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, StringDictionaryBuilder, StructBuilder,
    UInt32Builder, UInt64Builder, make_builder,
};
use arrow_array::types::UInt16Type;
use arrow_schema::{DataType, Field, Fields};
use pyo3::prelude::*;
use whywait_otf2::records::{TypedValue, Value};
use whywait_otf2::{Attributes, Event, EventSink};

use crate::arrow::Table;

/// Values of one field over all rows; absent rows are null.
enum Column {
    U32(UInt32Builder),
    U64(UInt64Builder),
    I64(Int64Builder),
    F64(Float64Builder),
    Text(StringBuilder),
    Name(StringDictionaryBuilder<UInt16Type>),
    U32s(ListBuilder<UInt32Builder>),
    U64s(ListBuilder<UInt64Builder>),
    /// Values with their types, one or several.
    Typed(ListBuilder<StructBuilder>),
    /// Properties with values and their types.
    Properties(ListBuilder<StructBuilder>),
}

/// Name of a value's type and its 64 bits.
fn typed_fields() -> Fields {
    Fields::from(vec![Field::new("type", DataType::Utf8, false), Field::new("bits", DataType::UInt64, false)])
}

/// A name and its type, the name of the value's type, its 64 bits.
fn named_fields(name: &str, kind: DataType) -> Fields {
    let mut fields = vec![Arc::new(Field::new(name, kind, false))];
    fields.extend(typed_fields().iter().cloned());
    Fields::from(fields)
}

fn structs(fields: &Fields) -> ListBuilder<StructBuilder> {
    let builders = fields.iter().map(|field| make_builder(field.data_type(), 0)).collect();
    let item = Field::new_list_field(DataType::Struct(fields.clone()), true);
    ListBuilder::new(StructBuilder::new(fields.clone(), builders)).with_field(Arc::new(item))
}

/// Calls a method that all builders have.
macro_rules! each {
    ($column:expr, $builder:ident => $body:expr) => {
        match $column {
            Column::U32($builder) => $body,
            Column::U64($builder) => $body,
            Column::I64($builder) => $body,
            Column::F64($builder) => $body,
            Column::Text($builder) => $body,
            Column::Name($builder) => $body,
            Column::U32s($builder) => $body,
            Column::U64s($builder) => $body,
            Column::Typed($builder) | Column::Properties($builder) => $body,
        }
    };
}

impl Column {
    /// A column for values like this one.
    fn like(value: &Value<'_>) -> Self {
        match value {
            Value::U8(_) | Value::U32(_) => Self::U32(UInt32Builder::new()),
            Value::U64(_) => Self::U64(UInt64Builder::new()),
            Value::I64(_) => Self::I64(Int64Builder::new()),
            Value::F64(_) => Self::F64(Float64Builder::new()),
            Value::Str(_) => Self::Text(StringBuilder::new()),
            Value::Enum { .. } => Self::Name(StringDictionaryBuilder::new()),
            Value::U32s(_) | Value::Strings(_) => Self::U32s(ListBuilder::new(UInt32Builder::new())),
            Value::U64s(_) | Value::IdPairs(_) => Self::U64s(ListBuilder::new(UInt64Builder::new())),
            Value::Typed(_) | Value::Metrics(_) => Self::Typed(structs(&typed_fields())),
            Value::IoProperties(_) => Self::Properties(structs(&named_fields("property", DataType::Utf8))),
        }
    }

    /// Appends a value.
    fn push(&mut self, value: &Value<'_>) {
        match (self, value) {
            (Self::U32(column), Value::U8(value)) => column.append_value(u32::from(*value)),
            (Self::U32(column), Value::U32(value)) => column.append_value(*value),
            (Self::U64(column), Value::U64(value)) => column.append_value(*value),
            (Self::I64(column), Value::I64(value)) => column.append_value(*value),
            (Self::F64(column), Value::F64(value)) => column.append_value(*value),
            (Self::Text(column), Value::Str(value)) => column.append_value(value),
            (Self::Name(column), Value::Enum { name: Some(name), .. }) => column.append_value(name),
            (Self::Name(column), Value::Enum { number, name: None }) => column.append_value(number.to_string()),
            (Self::U32s(column), Value::U32s(values)) => {
                column.values().append_slice(values);
                column.append(true);
            }
            (Self::U32s(column), Value::Strings(values)) => column.append_value(values.iter().map(Some)),
            (Self::U64s(column), Value::U64s(values)) => {
                column.values().append_slice(values);
                column.append(true);
            }
            (Self::Typed(column), Value::Typed(value)) => push_typed(column, [*value]),
            (Self::Typed(column), Value::Metrics(values)) => push_typed(column, values.iter()),
            (Self::Properties(column), Value::IoProperties(values)) => {
                for property in *values {
                    let item = column.values();
                    if let Some(name) = item.field_builder::<StringBuilder>(0) {
                        name.append_value(property.property.name().unwrap_or("UNKNOWN"));
                    }
                    push_value(item, 1, property.value);
                    item.append(true);
                }
                column.append(true);
            }
            // A field has one type under one column name; a value of another type becomes null.
            _ => {}
        }
    }

    fn pad(&mut self, rows: usize) {
        each!(self, column => {
            for _ in column.len()..rows {
                column.append_null();
            }
        });
    }

    fn finish(mut self, rows: usize) -> ArrayRef {
        self.pad(rows);
        each!(self, column => Arc::new(ArrayBuilder::finish(&mut { column })))
    }
}

fn push_typed(column: &mut ListBuilder<StructBuilder>, values: impl IntoIterator<Item = TypedValue>) {
    for value in values {
        let item = column.values();
        push_value(item, 0, value);
        item.append(true);
    }
    column.append(true);
}

/// Fills the fields `type` and `bits` of a struct, the first at position `at`.
fn push_value(item: &mut StructBuilder, at: usize, value: TypedValue) {
    if let Some(kind) = item.field_builder::<StringBuilder>(at) {
        kind.append_value(value.kind.name().unwrap_or("UNKNOWN"));
    }
    if let Some(bits) = item.field_builder::<UInt64Builder>(at + 1) {
        bits.append_value(value.bits);
    }
}

/// Columns by name, created as fields occur.
#[derive(Default)]
pub(crate) struct Columns {
    columns: Vec<(&'static str, Column)>,
    rows: usize,
}

/// The column of an event's field: its own name, unless other records use that for another type, or the table for
/// another column.
fn event_column(field: &'static str, value: &Value<'_>) -> &'static str {
    match (field, value) {
        ("type", Value::Enum { .. }) => "atomic_type",
        ("lock_id", Value::U64(_)) => "rma_lock_id",
        ("value", Value::U64(_)) => "unsigned_value",
        _ => field,
    }
}

impl Columns {
    /// Sets a field of the current row.
    pub(crate) fn set(&mut self, name: &'static str, value: &Value<'_>) {
        let found = self.columns.iter().position(|(column, _)| *column == name);
        let position = found.unwrap_or_else(|| {
            self.columns.push((name, Column::like(value)));
            self.columns.len() - 1
        });
        let (_, column) = &mut self.columns[position];
        column.pad(self.rows);
        column.push(value);
    }

    /// Ends the current row.
    pub(crate) fn end_row(&mut self) {
        self.rows += 1;
    }

    /// The table, with `front` as its first columns.
    pub(crate) fn finish(self, front: Vec<(&'static str, ArrayRef)>) -> PyResult<Table> {
        let rows = self.rows;
        let fields = self.columns.into_iter().map(|(name, column)| (name, column.finish(rows)));
        Table::new(front.into_iter().chain(fields).collect())
    }
}

/// Events of one location as a table.
pub(crate) struct EventTable {
    time: Int64Builder,
    kind: StringDictionaryBuilder<UInt16Type>,
    fields: Columns,
    attributes: ListBuilder<StructBuilder>,
    /// Attributes of the Enter or Leave that follows.
    pending: Vec<(u32, TypedValue)>,
}

impl EventTable {
    pub(crate) fn new() -> Self {
        Self {
            time: Int64Builder::new(),
            kind: StringDictionaryBuilder::new(),
            fields: Columns::default(),
            attributes: structs(&named_fields("attribute", DataType::UInt32)),
            pending: Vec::new(),
        }
    }

    pub(crate) fn finish(mut self) -> PyResult<Table> {
        let attributes: ArrayRef = Arc::new(self.attributes.finish());
        let time: ArrayRef = Arc::new(self.time.finish());
        let kind: ArrayRef = Arc::new(self.kind.finish());
        self.fields.finish(vec![("time", time), ("type", kind), ("attributes", attributes)])
    }

    fn row(&mut self, time: i64, kind: &str, attributes: impl IntoIterator<Item = (u32, TypedValue)>) {
        self.time.append_value(time);
        self.kind.append_value(kind);
        let mut any = false;
        for (attribute, value) in attributes {
            any = true;
            let item = self.attributes.values();
            if let Some(id) = item.field_builder::<UInt32Builder>(0) {
                id.append_value(attribute);
            }
            push_value(item, 1, value);
            item.append(true);
        }
        self.attributes.append(any);
        self.fields.end_row();
    }

    fn region(&mut self, time: i64, kind: &str, region: u32) {
        self.fields.set("region", &Value::U32(region));
        let pending = std::mem::take(&mut self.pending);
        self.row(time, kind, pending);
    }
}

impl EventSink for EventTable {
    fn enter(&mut self, time: i64, region: u32) {
        self.region(time, "Enter", region);
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.region(time, "Leave", region);
    }

    fn attributed(&mut self, attributes: &Attributes<'_>) {
        self.pending = attributes.iter().map(|attribute| (attribute.id, attribute.value)).collect();
    }

    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        let fields = &mut self.fields;
        record.visit(&mut |name, value| fields.set(event_column(name, &value), &value));
        self.row(time, record.name(), attributes.iter().map(|attribute| (attribute.id, attribute.value)));
    }
}
