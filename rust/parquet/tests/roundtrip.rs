//! The reader of the Parquet library returns the written tables, whatever the form of their columns.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringDictionaryBuilder, UInt32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, ListArray, RecordBatch,
    StringArray, StructArray, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Fields, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use proptest::prelude::*;
use whywait_parquet::{Error, Writer};

/// A value as text, whether or not it is kept in a dictionary.
fn shown(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "-".to_owned();
    }
    match array.data_type() {
        DataType::Dictionary(..) => {
            let one = array.slice(row, 1);
            let kept = one.as_any_dictionary();
            shown(kept.values().as_ref(), kept.normalized_keys()[0])
        }
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Float64 => format!("{:x}", array.as_primitive::<Float64Type>().value(row).to_bits()),
        DataType::Utf8 => format!("{:?}", array.as_string::<i32>().value(row)),
        DataType::List(_) => {
            let list = array.as_list::<i32>().value(row);
            format!("{:?}", (0..list.len()).map(|row| shown(list.as_ref(), row)).collect::<Vec<_>>())
        }
        DataType::Struct(_) => {
            let parts = array.as_struct().columns().iter().map(|part| shown(part.as_ref(), row));
            format!("{:?}", parts.collect::<Vec<_>>())
        }
        kind => unreachable!("{kind}"),
    }
}

fn rows(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let row = |batch: &RecordBatch, row| batch.columns().iter().map(|column| shown(column.as_ref(), row)).collect();
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |at| row(batch, at))).collect()
}

fn name() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

fn schema() -> Schema {
    let axes = DataType::Struct(Fields::from(vec![
        Field::new("size", DataType::UInt32, true),
        Field::new("at", DataType::List(Arc::new(Field::new_list_field(DataType::UInt32, true))), true),
    ]));
    Schema::new(vec![
        Field::new("id", DataType::UInt32, false),
        Field::new("rank", DataType::Int32, true),
        Field::new("time", DataType::Float64, true),
        Field::new("share", DataType::Float64, true),
        Field::new("large", DataType::UInt64, true),
        Field::new("signed", DataType::Int64, true),
        Field::new("is", DataType::Boolean, true),
        Field::new("kind", name(), true),
        Field::new("text", DataType::Utf8, true),
        Field::new("path", DataType::List(Arc::new(Field::new_list_field(name(), true))), true),
        Field::new("axes", DataType::List(Arc::new(Field::new_list_field(axes, true))), true),
    ])
}

/// The values of a row.
type Row = (u32, Option<u8>, Option<f64>, Option<u64>, Option<bool>, Option<u8>);

const NAMES: [Option<&str>; 5] = [Some("main"), Some(""), Some("MPI_Recv"), None, Some("solve")];

fn paths() -> ListArray {
    let mut paths = ListBuilder::new(StringDictionaryBuilder::<Int32Type>::new());
    for length in 0..8 {
        (0..length).for_each(|i| paths.values().append_option(NAMES[(i * length) % NAMES.len()]));
        paths.append(length != 6);
    }
    paths.finish()
}

fn kept<T: Array + 'static>(keys: impl Iterator<Item = Option<u8>>, values: T) -> ArrayRef {
    Arc::new(DictionaryArray::<UInt8Type>::new(keys.collect(), Arc::new(values)))
}

fn axes(rows: &[Row]) -> ArrayRef {
    let mut at = ListBuilder::new(UInt32Builder::new());
    let (mut sizes, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for &(id, key, ..) in rows {
        let length = id as usize % 3;
        for i in 0..length {
            sizes.push(key.map(u32::from));
            (0..id % 4).for_each(|j| at.values().append_option((j != 2).then_some(j + i as u32)));
            at.append(id % 5 != 1);
        }
        lengths.push(length);
        valid.push(id % 7 != 3);
    }
    let sizes: ArrayRef = Arc::new(UInt32Array::from(sizes));
    let at: ArrayRef = Arc::new(at.finish());
    let DataType::List(element) = schema().field(10).data_type().clone() else { unreachable!() };
    let DataType::Struct(fields) = element.data_type() else { unreachable!() };
    let parts = StructArray::new(fields.clone(), vec![sizes, at], None);
    let offsets = arrow_buffer::OffsetBuffer::from_lengths(lengths);
    Arc::new(ListArray::new(element, offsets, Arc::new(parts), Some(valid.into())))
}

/// Real numbers as they are, kept once, or all of them absent.
fn times(rows: &[Row]) -> ArrayRef {
    let times: Float64Array = rows.iter().map(|row| row.2).collect();
    match rows.first() {
        Some(row) if row.0 % 3 == 1 => {
            let keys = (0..rows.len()).map(|row| Some(row as u8));
            kept(keys, times)
        }
        Some(row) if row.0 % 3 == 2 => Arc::new(Float64Array::new_null(rows.len())),
        _ => Arc::new(times),
    }
}

/// A piece of a table; some columns are dictionaries of the type in the file.
fn batch(rows: &[Row]) -> RecordBatch {
    let key = |modulus: u8| rows.iter().map(move |row| row.1.map(|key| key % modulus));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(rows.iter().map(|row| Some(row.0)).collect::<UInt32Array>())),
        ("rank", kept(key(4), Int32Array::from(vec![Some(-1), Some(0), Some(70_000), None]))),
        ("time", times(rows)),
        ("share", Arc::new(rows.iter().map(|row| row.5.map(|share| f64::from(share) / 4.0)).collect::<Float64Array>())),
        ("large", Arc::new(rows.iter().map(|row| row.3).collect::<UInt64Array>())),
        ("signed", Arc::new(rows.iter().map(|row| row.3.map(|large| large as i64)).collect::<Int64Array>())),
        ("is", Arc::new(rows.iter().map(|row| row.4).collect::<BooleanArray>())),
        ("kind", kept(key(5), StringArray::from(NAMES.to_vec()))),
        (
            "text",
            Arc::new(rows.iter().map(|row| row.5.and_then(|key| NAMES[key as usize % 5])).collect::<StringArray>()),
        ),
        ("path", kept(key(8), paths())),
        ("axes", axes(rows)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

/// The bytes of a file.
fn file(groups: &[Vec<RecordBatch>]) -> Bytes {
    let metadata = vec![("mark".to_owned(), "1".to_owned())];
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, Arc::new(schema()), metadata, vec!["share".to_owned()]).unwrap();
    for group in groups {
        writer.write(group).unwrap();
    }
    writer.close().unwrap();
    out.into()
}

fn read(file: Bytes) -> Vec<Vec<String>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    rows(&reader.map(Result::unwrap).collect::<Vec<_>>())
}

fn row() -> impl Strategy<Value = Row> {
    (
        0_u32..200_000,
        prop::option::weighted(0.9, any::<u8>()),
        prop::option::weighted(0.9, any::<f64>()),
        prop::option::weighted(0.9, any::<u64>()),
        any::<Option<bool>>(),
        any::<Option<u8>>(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn comes_back(groups in prop::collection::vec(prop::collection::vec(prop::collection::vec(row(), 0..40), 0..4), 0..3)) {
        let groups: Vec<Vec<RecordBatch>> =
            groups.iter().map(|group| group.iter().map(|rows| batch(rows)).collect()).collect();
        prop_assert_eq!(read(file(&groups)), rows(&groups.concat()));
    }

    #[test]
    fn parts_of_long_columns_of_times_come_back(
        parts in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.7, prop_oneof![3 => any::<f64>(), 2 => Just(0.0)]), 0..200), 1..4),
        skipped in 0..70_usize,
    ) {
        let schema = Arc::new(Schema::new(vec![Field::new("time", DataType::Float64, true)]));
        let batch = |part: &Vec<Option<f64>>| {
            let times: ArrayRef = Arc::new(part.iter().copied().collect::<Float64Array>());
            let batch = RecordBatch::try_new(schema.clone(), vec![times]).expect("a column of this type");
            batch.slice(skipped.min(part.len()), part.len().saturating_sub(skipped))
        };
        let batches: Vec<RecordBatch> = parts.iter().map(batch).collect();
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, schema.clone(), Vec::new(), Vec::new()).expect("a known type");
        writer.write(&batches).expect("room in memory");
        writer.close().expect("room in memory");
        prop_assert_eq!(read(out.into()), rows(&batches));
    }

    #[test]
    fn numbers_that_follow_each_other_come_back(runs in prop::collection::vec((any::<u32>(), 1_u32..300), 1..8)) {
        let numbers = runs.iter().flat_map(|&(first, count)| (0..count).map(move |i| first.wrapping_add(i)));
        let group = vec![batch(&numbers.map(|i| (i, None, None, None, None, None)).collect::<Vec<_>>())];
        prop_assert_eq!(read(file(std::slice::from_ref(&group))), rows(&group));
    }
}

#[test]
fn threads_write_the_same() {
    let rows_of = |i: u32| (i % 1000, Some((i % 13) as u8), Some(f64::from(i)), Some(u64::from(i)), None, Some(1));
    let group = vec![batch(&(0..40_000).map(rows_of).collect::<Vec<_>>())];
    assert_eq!(read(file(std::slice::from_ref(&group))), rows(&group));
}

#[test]
fn readers_can_skip_groups() {
    let rows: Vec<Row> =
        [(7, Some(1), Some(-0.5), Some(3), Some(true), None), (9, Some(2), Some(2.5), None, None, None)].into();
    let file = SerializedFileReader::new(file(&[vec![batch(&rows)]])).unwrap();
    let group = file.metadata().row_group(0);
    let of = |column: usize| group.column(column).statistics();
    assert_eq!(of(0), Some(&Statistics::int32(Some(7), Some(9), None, Some(0), false)));
    assert_eq!(of(1), Some(&Statistics::int32(Some(0), Some(70_000), None, Some(0), false)));
    assert_eq!(of(2), Some(&Statistics::double(Some(-0.5), Some(2.5), None, Some(0), false)));
    assert_eq!(of(4), Some(&Statistics::int64(Some(3), Some(3), None, Some(1), false)));
    let texts = (Some("".into()), Some("MPI_Recv".into()));
    assert_eq!(of(7), Some(&Statistics::byte_array(texts.0, texts.1, None, Some(0), false)));
    assert_eq!(file.metadata().file_metadata().key_value_metadata().unwrap()[0].value.as_deref(), Some("1"));
}

#[test]
fn refuses_what_was_not_declared() {
    let schema = Schema::new(vec![Field::new("rank", DataType::Int32, false)]);
    let mut writer = Writer::new(Vec::new(), Arc::new(schema), vec![], vec![]).unwrap();
    let piece = |column: ArrayRef| [RecordBatch::try_from_iter([("rank", column)]).unwrap()];
    let other = writer.write(&piece(Arc::new(Float64Array::from(vec![1.0]))));
    assert!(matches!(other, Err(Error::Type(name, DataType::Float64)) if name == "rank"));
    let absent = writer.write(&piece(Arc::new(Int32Array::from(vec![None]))));
    assert!(matches!(absent, Err(Error::Null(name)) if name == "rank"));
    let schema = Schema::new(vec![Field::new("half", DataType::Float16, false)]);
    let unknown = Writer::new(Vec::new(), Arc::new(schema), vec![], vec![]);
    assert!(matches!(unknown, Err(Error::Type(name, DataType::Float16)) if name == "half"));
}

/// A disk without room.
struct Full;

impl std::io::Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_named() {
    let schema = Schema::new(vec![Field::new("rank", DataType::Int32, true)]);
    let mut writer = Writer::new(Full, Arc::new(schema), vec![], vec![]).unwrap();
    let nothing: ArrayRef = Arc::new(arrow_array::NullArray::new(3));
    writer.write(&[RecordBatch::try_from_iter([("rank", nothing)]).unwrap()]).unwrap();
    assert!(matches!(writer.close(), Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::StorageFull));
}
