//! Encodes a column chunk: a dictionary page, and a data page that refers to it.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use zstd::bulk::Compressor;

use crate::column::Leaf;
use crate::parts::{Order, Part, append};
use crate::{Result, hybrid};

/// The bytes of a column chunk and its metadata.
pub(crate) struct Chunk {
    pub(crate) bytes: Bytes,
    pub(crate) close: ColumnCloseResult,
}

/// Encode a leaf of `rows` rows; `order` is that of the column.
pub(crate) fn encode(
    leaf: &Leaf,
    order: Option<&Order>,
    rows: usize,
    compressor: &mut Compressor<'_>,
) -> Result<Chunk> {
    let descriptor = &leaf.descriptor;
    let parts = order.map(|order| (leaf.parts.as_slice(), order));
    let sum = |of_part: fn(&Part) -> usize| parts.map(|(parts, order)| order.sum(parts.iter().map(of_part)));
    let levels = sum(|part| part.levels.len()).unwrap_or(leaf.definition.len);
    let nulls = (levels - sum(|part| part.values.len()).unwrap_or(leaf.len())) as u64;
    let mut data = Vec::new();
    let mut put_levels = |each: &[u8], highest: u8| {
        let width = hybrid::width(u32::from(highest));
        with_length(&mut data, |data| append(each, parts, |part| &part.levels, width, data));
    };
    if descriptor.max_rep_level() > 0 {
        put_levels(&leaf.repetition, descriptor.max_rep_level() as u8);
    }
    match (&leaf.definition.each, leaf.definition.highest) {
        (_, 0) => {}
        (Some(each), highest) => put_levels(each, highest),
        (None, highest) => {
            let width = hybrid::width(u32::from(highest));
            with_length(&mut data, |data| hybrid::encode_run(highest, levels, width, data));
        }
    }
    let values = leaf.values.encode(leaf.kind, parts, nulls, &mut data);

    let mut sink = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut sink);
    let mut sizes = (0, 0);
    let mut dictionary_offset = None;
    let mut data_offset = 0;
    let mut put = |page, size| -> Result<()> {
        let written = pages.write_page(CompressedPage::new(page, size))?;
        match written.page_type {
            PageType::DICTIONARY_PAGE => dictionary_offset = Some(written.offset as i64),
            _ => data_offset = written.offset as i64,
        }
        sizes.0 += written.compressed_size as i64;
        sizes.1 += written.uncompressed_size as i64;
        Ok(())
    };
    if let Some((distinct, count)) = &values.dictionary {
        let page = Page::DictionaryPage {
            buf: compressor.compress(distinct)?.into(),
            num_values: *count as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        put(page, distinct.len())?;
    }
    let page = Page::DataPage {
        buf: compressor.compress(&data)?.into(),
        num_values: levels as u32,
        encoding: values.encoding,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    };
    put(page, data.len())?;

    let mut metadata = ColumnChunkMetaData::builder(descriptor.clone())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, values.encoding])
        .set_num_values(levels as i64)
        .set_total_compressed_size(sizes.0)
        .set_total_uncompressed_size(sizes.1)
        .set_dictionary_page_offset(dictionary_offset)
        .set_data_page_offset(data_offset);
    // Statistics are of no use for lists.
    if descriptor.max_rep_level() == 0 {
        metadata = metadata.set_statistics(values.statistics);
    }
    let close = ColumnCloseResult {
        bytes_written: sizes.0 as u64,
        rows_written: rows as u64,
        metadata: metadata.build()?,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    Ok(Chunk { bytes: sink.into_inner()?.into(), close })
}

/// Append data, preceded by its length in bytes.
fn with_length(data: &mut Vec<u8>, append: impl FnOnce(&mut Vec<u8>)) {
    let begin = data.len();
    data.extend_from_slice(&[0; 4]);
    append(data);
    let bytes = (data.len() - begin - 4) as u32;
    data[begin..begin + 4].copy_from_slice(&bytes.to_le_bytes());
}
