//! Avro object container files: `"Obj" 01 | metadata map | sync | count, size, records, sync` (Avro 1.11.1), codec `null`.

/// A record, or any part of one, encoded.
#[derive(Debug, Default)]
pub(crate) struct Record(Vec<u8>);

impl Record {
    /// An int or a long: a zigzag varint.
    pub(crate) fn long(&mut self, value: i64) -> &mut Self {
        let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
        while rest >= 0x80 {
            self.0.push(rest.to_le_bytes()[0] | 0x80);
            rest >>= 7;
        }
        self.0.push(rest.to_le_bytes()[0]);
        self
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.length(bytes.len());
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    pub(crate) fn boolean(&mut self, value: bool) -> &mut Self {
        self.0.push(u8::from(value));
        self
    }

    /// The null of a union of null and something.
    pub(crate) fn null(&mut self) -> &mut Self {
        self.long(0)
    }

    /// The something of such a union, whose value is to follow.
    pub(crate) fn some(&mut self) -> &mut Self {
        self.long(1)
    }

    /// A union of null and something.
    pub(crate) fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) -> &mut Self {
        match value {
            None => {
                self.null();
            }
            Some(value) => write(self.some(), value),
        }
        self
    }

    /// An array, in one block.
    pub(crate) fn array<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) -> &mut Self {
        if !items.is_empty() {
            self.length(items.len());
            for item in items {
                write(self, item);
            }
        }
        self.long(0)
    }

    fn length(&mut self, length: usize) {
        self.long(i64::try_from(length).unwrap_or(i64::MAX));
    }
}

/// A file of these records in one block, with this metadata beside the schema.
pub(crate) fn container(schema: &str, metadata: &[(&str, &str)], sync: [u8; 16], records: &[Record]) -> Vec<u8> {
    let mut header = Record(b"Obj\x01".to_vec());
    let all: Vec<_> = metadata.iter().copied().chain([("avro.schema", schema), ("avro.codec", "null")]).collect();
    header.array(&all, |out, (key, value)| {
        out.text(key).text(value);
    });
    let mut file = header.0;
    file.extend(sync);
    if !records.is_empty() {
        let mut block = Record(Vec::new());
        block.length(records.len());
        block.length(records.iter().map(|record| record.0.len()).sum());
        file.extend(block.0);
        for record in records {
            file.extend_from_slice(&record.0);
        }
        file.extend(sync);
    }
    file
}
