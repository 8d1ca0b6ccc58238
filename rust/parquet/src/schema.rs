//! Maps Arrow columns to Parquet types, as Arrow's own writers do.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::schema::types::{Type, TypePtr};

use crate::{Error, Result};

/// The kind of a column's values in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Signed32,
    Unsigned32,
    Signed64,
    Unsigned64,
    Double,
    Text,
}

impl Kind {
    /// The kind of values of a type (for a dictionary, of its values); `None` for a nested type.
    pub(crate) fn of(kind: &DataType) -> Option<Self> {
        match kind {
            DataType::Dictionary(_, values) => Self::of(values),
            DataType::Boolean => Some(Self::Bool),
            DataType::Int32 => Some(Self::Signed32),
            DataType::UInt32 => Some(Self::Unsigned32),
            DataType::Int64 => Some(Self::Signed64),
            DataType::UInt64 => Some(Self::Unsigned64),
            DataType::Float64 => Some(Self::Double),
            DataType::Utf8 => Some(Self::Text),
            _ => None,
        }
    }

    fn physical(self) -> (PhysicalType, Option<LogicalType>) {
        match self {
            Self::Bool => (PhysicalType::BOOLEAN, None),
            Self::Signed32 => (PhysicalType::INT32, None),
            Self::Unsigned32 => (PhysicalType::INT32, Some(LogicalType::integer(32, false))),
            Self::Signed64 => (PhysicalType::INT64, None),
            Self::Unsigned64 => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
            Self::Double => (PhysicalType::DOUBLE, None),
            Self::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        }
    }

    /// Bytes of a value; 0 if they differ in length.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Signed32 | Self::Unsigned32 => 4,
            Self::Signed64 | Self::Unsigned64 | Self::Double => 8,
            Self::Text => 0,
        }
    }
}

/// The columns of a file.
pub(crate) fn root(fields: &Fields) -> Result<TypePtr> {
    let fields = fields.iter().map(|field| column(field)).collect::<Result<_>>()?;
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?))
}

fn column(field: &Field) -> Result<TypePtr> {
    let repetition = if field.is_nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let group = |name, fields| Type::group_type_builder(name).with_fields(fields);
    let kind = match field.data_type() {
        DataType::Dictionary(_, values) => {
            return column(&Field::new(field.name(), values.as_ref().clone(), field.is_nullable()));
        }
        DataType::List(element) => {
            let element = column(&Field::new("element", element.data_type().clone(), element.is_nullable()))?;
            let list = group("list", vec![element]).with_repetition(Repetition::REPEATED).build()?;
            group(field.name(), vec![Arc::new(list)])
                .with_repetition(repetition)
                .with_logical_type(Some(LogicalType::List))
                .build()?
        }
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| column(field)).collect::<Result<_>>()?;
            group(field.name(), fields).with_repetition(repetition).build()?
        }
        kind => {
            let kind = Kind::of(kind).ok_or_else(|| Error::Type(field.name().clone(), kind.clone()))?;
            let (physical, logical) = kind.physical();
            Type::primitive_type_builder(field.name(), physical)
                .with_repetition(repetition)
                .with_logical_type(logical)
                .build()?
        }
    };
    Ok(Arc::new(kind))
}
