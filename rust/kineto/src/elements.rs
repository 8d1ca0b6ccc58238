//! Sizes of elements.

/// Bytes of an element of a tensor, by the name of its type; 0 if unknown.
pub(crate) fn element_size(name: &str) -> u64 {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "byte" | "char" | "bool" | "int8" | "uint8" => 1,
        "short" | "half" | "bfloat16" | "float16" | "c10::half" | "c10::bfloat16" | "int16" | "uint16" => 2,
        "int" | "float" | "float32" | "int32" | "uint32" => 4,
        "long" | "double" | "float64" | "int64" | "uint64" | "long int" | "complexfloat" => 8,
        "complexdouble" => 16,
        _ if name.starts_with("float8") => 1,
        _ => 0,
    }
}
