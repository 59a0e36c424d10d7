//! Random rows, as the file of a cache stores them and as SQL sees them.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, StringArray, StringViewArray, StructArray,
    TimestampMicrosecondArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use datafusion::arrow::record_batch::RecordBatch;
use hypseq_iceberg::FieldType;
use parquet_variant::VariantBuilder;
use parquet_variant_json::JsonToVariant as _;

/// The columns of the generated tables, with their field ids.
pub(super) const COLUMNS: [(&str, FieldType, i32); 8] = [
    ("seq", FieldType::Long, 1),
    ("at", FieldType::Timestamptz, 2),
    ("n", FieldType::Int, 3),
    ("wide", FieldType::Long, 4),
    ("word", FieldType::String, 5),
    ("flag", FieldType::Boolean, 6),
    ("attrs", FieldType::Variant, 7),
    ("late", FieldType::String, 8),
];

/// The first instant of the generated times, in microseconds; a row's time is some seconds later.
pub(super) const START: i64 = 1_784_000_000_000_000;

/// A small generator of pseudo-random numbers (SplitMix64): the same seed makes the same table.
#[derive(Debug, Clone)]
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }
}

/// One row. `wide` is always in the range of a 32-bit integer: some files store it as one.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub seq: Option<i64>,
    pub at: Option<i64>,
    pub n: Option<i32>,
    pub wide: Option<i32>,
    pub word: Option<&'static str>,
    pub flag: Option<bool>,
    pub attrs: Option<String>,
    pub late: Option<&'static str>,
}

impl Row {
    /// A row around the given seq. Times follow seqs, with jitter and some outliers, as in a cache.
    pub(super) fn random(random: &mut Random, seq: i64) -> Self {
        let jitter = if random.chance(5) { 5_000 } else { 20 };
        let seconds = seq * 10 + i64::try_from(random.below(jitter)).unwrap();
        let number = i32::try_from(random.below(50)).unwrap();
        Self {
            seq: (!random.chance(4)).then_some(seq),
            at: (!random.chance(4)).then_some(START + seconds * 1_000_000),
            n: (!random.chance(10)).then_some(number - 25),
            wide: (!random.chance(10)).then_some(number * 1_000_003),
            word: (!random.chance(10)).then(|| random.pick(&["merge", "cache", "rewind", "gateway", "", "o'brien"])),
            flag: (!random.chance(10)).then(|| random.chance(50)),
            attrs: match random.below(6) {
                0 => None,
                1 => Some("null".to_owned()),
                2 => Some(format!("\"text {number}\"")),
                3 => Some(format!("[{number},1.5,true]")),
                _ => Some(format!("{{\"k\":{number},\"s\":\"{}\"}}", random.pick(&["a", "b"]))),
            },
            late: random.chance(70).then(|| random.pick(&["x", "y"])),
        }
    }
}

/// How a file stores its rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Storage {
    /// Whether it has the column that was added later.
    pub has_late: bool,
    /// Whether `wide` is still a 32-bit column.
    pub is_narrow: bool,
    /// Whether `word` still has its old name.
    pub has_old_name: bool,
}

/// The rows as a file stores them.
pub(super) fn stored(rows: &[Row], storage: Storage) -> RecordBatch {
    let with_id = |name: &str, id: i32, data_type: DataType| {
        Field::new(name, data_type, true).with_metadata([("PARQUET:field_id".to_owned(), id.to_string())].into())
    };
    let variants = variants(rows);
    let wide: ArrayRef = if storage.is_narrow { Arc::new(narrow(rows)) } else { Arc::new(wide(rows)) };
    let word = if storage.has_old_name { "old_word" } else { "word" };
    let mut columns: Vec<(Field, ArrayRef)> = vec![
        (with_id(word, 5, DataType::Utf8), Arc::new(rows.iter().map(|row| row.word).collect::<StringArray>())),
        (with_id("seq", 1, DataType::Int64), Arc::new(rows.iter().map(|row| row.seq).collect::<Int64Array>())),
        (with_id("at", 2, zoned()), Arc::new(times(rows))),
        (with_id("n", 3, DataType::Int32), Arc::new(rows.iter().map(|row| row.n).collect::<Int32Array>())),
        (with_id("wide", 4, wide.data_type().clone()), wide),
        (with_id("flag", 6, DataType::Boolean), Arc::new(rows.iter().map(|row| row.flag).collect::<BooleanArray>())),
        (with_id("attrs", 7, DataType::Struct(variants.fields().clone())), Arc::new(variants)),
    ];
    if storage.has_late {
        let late = Arc::new(rows.iter().map(|row| row.late).collect::<StringArray>());
        columns.push((with_id("late", 8, DataType::Utf8), late));
    }
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

/// The rows' columns as SQL sees them, in the order of [`COLUMNS`].
pub(super) fn seen(rows: &[Row], storage: Storage) -> Vec<ArrayRef> {
    let json = |row: &Row| row.attrs.clone().filter(|json| json != "null");
    let late = |row: &Row| row.late.filter(|_| storage.has_late);
    vec![
        Arc::new(rows.iter().map(|row| row.seq).collect::<Int64Array>()),
        Arc::new(times(rows)),
        Arc::new(rows.iter().map(|row| row.n).collect::<Int32Array>()),
        Arc::new(wide(rows)),
        Arc::new(rows.iter().map(|row| row.word).collect::<StringViewArray>()),
        Arc::new(rows.iter().map(|row| row.flag).collect::<BooleanArray>()),
        Arc::new(rows.iter().map(json).collect::<StringViewArray>()),
        Arc::new(rows.iter().map(late).collect::<StringViewArray>()),
    ]
}

fn zoned() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn times(rows: &[Row]) -> TimestampMicrosecondArray {
    rows.iter().map(|row| row.at).collect::<TimestampMicrosecondArray>().with_timezone("UTC")
}

fn narrow(rows: &[Row]) -> Int32Array {
    rows.iter().map(|row| row.wide).collect()
}

fn wide(rows: &[Row]) -> Int64Array {
    rows.iter().map(|row| row.wide.map(i64::from)).collect()
}

fn variants(rows: &[Row]) -> StructArray {
    let encode = |json: &str| {
        let mut builder = VariantBuilder::new();
        builder.append_json(json).unwrap();
        builder.finish()
    };
    let encoded: Vec<_> = rows.iter().map(|row| row.attrs.as_deref().map(encode)).collect();
    let metadata: BinaryArray =
        encoded.iter().map(|pair| Some(pair.as_ref().map_or(&[][..], |(metadata, _)| metadata))).collect();
    let values: BinaryArray = encoded.iter().map(|pair| pair.as_ref().map(|(_, value)| value)).collect();
    let fields = Fields::from(vec![
        Field::new("metadata", DataType::Binary, false),
        Field::new("value", DataType::Binary, true),
    ]);
    let nulls: NullBuffer = encoded.iter().map(Option::is_some).collect();
    StructArray::new(fields, vec![Arc::new(metadata), Arc::new(values)], Some(nulls))
}
