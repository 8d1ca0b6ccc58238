//! Encodes a column chunk: a dictionary page, and a data page that refers to it.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use zstd::bulk::Compressor;

use crate::column::Leaf;
use crate::{Result, hybrid};

/// The bytes of a column chunk and its metadata.
pub(crate) struct Chunk {
    pub(crate) bytes: Bytes,
    pub(crate) close: ColumnCloseResult,
}

/// Encode a leaf of `rows` rows.
pub(crate) fn encode(leaf: &Leaf, rows: usize, compressor: &mut Compressor<'_>) -> Result<Chunk> {
    let descriptor = &leaf.descriptor;
    let levels = leaf.definition.len;
    let nulls = (levels - leaf.len()) as u64;
    let mut data = Vec::new();
    if descriptor.max_rep_level() > 0 {
        let width = hybrid::width(descriptor.max_rep_level() as u32);
        with_length(&mut data, |data| hybrid::encode(&leaf.repetition, width, data));
    }
    if leaf.definition.highest > 0 {
        let width = hybrid::width(u32::from(leaf.definition.highest));
        with_length(&mut data, |data| match &leaf.definition.each {
            Some(each) => hybrid::encode(each, width, data),
            None => hybrid::encode_run(leaf.definition.highest, levels, width, data),
        });
    }
    let values = leaf.values.encode(leaf.kind, nulls, &mut data);

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
