//! From the absolute URLs of the machine that wrote a table to paths on this one.
//!
//! Every URL in the metadata is taken by its place below the table's `location`, and that place is looked up below the
//! folder in which the metadata file was found. What has no such place, or a place that would leave the folder, is
//! refused. Symbolic links are not looked at: a link inside the folder is followed wherever it leads.

use std::path::{Component, Path, PathBuf};

use percent_encoding::percent_decode_str;

use crate::Error;

/// A table's recorded location, and where the table is now.
#[derive(Debug, Clone)]
pub(crate) struct Relocation {
    location: String,
    prefix: Vec<String>,
    dir: PathBuf,
}

impl Relocation {
    /// # Errors
    /// [`Error::Invalid`] when the location is not an absolute URL or path.
    pub(crate) fn new(location: &str, dir: &Path, metadata_file: &Path) -> Result<Self, Error> {
        let prefix = segments(location).filter(|s| !s.is_empty()).ok_or_else(|| Error::Invalid {
            path: metadata_file.to_owned(),
            expected: "an absolute URL or path as `location`".to_owned(),
            found: format!("`{location}`"),
        })?;
        Ok(Self { location: location.to_owned(), prefix, dir: dir.to_owned() })
    }

    /// Where the file of that URL is now; `named_in` is the file that names it.
    ///
    /// # Errors
    /// [`Error::Outside`] unless the URL lies below the location, component by component, after percent-decoding.
    pub(crate) fn resolve(&self, url: &str, named_in: &Path) -> Result<PathBuf, Error> {
        if let Some(place) = self.literal(url) {
            return Ok(self.dir.join(place));
        }
        let outside =
            || Error::Outside { path: named_in.to_owned(), url: url.to_owned(), location: self.location.clone() };
        let segments = segments(url).ok_or_else(outside)?;
        let place = segments.strip_prefix(self.prefix.as_slice()).filter(|p| !p.is_empty()).ok_or_else(outside)?;
        let mut path = self.dir.clone();
        for segment in place {
            if !is_plain_name(segment) {
                return Err(outside());
            }
            path.push(segment);
        }
        Ok(path)
    }
}

impl Relocation {
    /// The place of a URL that is spelled like the location and has nothing to decode or to split otherwise.
    fn literal<'u>(&self, url: &'u str) -> Option<&'u str> {
        let place = url.strip_prefix(self.location.trim_end_matches('/'))?.strip_prefix('/')?;
        let is_literal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_' | b'.' | b'=');
        (place.bytes().all(is_literal) && place.split('/').all(is_plain_name)).then_some(place)
    }
}

/// The form under which two spellings of one URL are equal: a position-delete file may write `file:/` where the
/// manifest writes `file:///`.
pub(crate) fn canonical(url: &str) -> String {
    segments(url).map_or_else(|| url.to_owned(), |s| s.join("/"))
}

/// Splits an absolute URL or path into its decoded segments; none when it is not absolute, or decodes to something
/// that is not UTF-8. A `file` URL of this or no host, and a plain path, are the same thing; every other scheme and
/// host stays as leading segments.
fn segments(url: &str) -> Option<Vec<String>> {
    let decode = |s: &str| percent_decode_str(s).decode_utf8().ok().map(std::borrow::Cow::into_owned);
    if let Some(rest) = strip_scheme(url, "file:") {
        let path = match rest.strip_prefix("//") {
            Some(rest) => {
                let (host, path) = rest.split_at(rest.find('/')?);
                if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                    let host = Some(format!("//{host}"));
                    return std::iter::once(host).chain(split(path, &['/']).map(decode)).collect();
                }
                path
            }
            None => rest.strip_prefix('/').map(|_| rest)?,
        };
        return split(path, &['/']).map(decode).collect();
    }
    if is_windows_path(url) {
        return Some(split(url, &['/', '\\']).map(str::to_owned).collect());
    }
    if url.starts_with('/') {
        return Some(split(url, &['/']).map(str::to_owned).collect());
    }
    let (_, rest) = url.split_once("://")?;
    let scheme = &url[..url.len() - rest.len()];
    std::iter::once(Some(scheme.to_owned())).chain(split(rest, &['/']).map(decode)).collect()
}

/// Leading, trailing and doubled separators carry no meaning.
fn split<'a>(path: &'a str, separators: &'a [char]) -> impl Iterator<Item = &'a str> {
    path.split(separators).filter(|s| !s.is_empty())
}

fn strip_scheme<'a>(url: &'a str, scheme: &str) -> Option<&'a str> {
    let (head, rest) = url.split_at_checked(scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// `C:\…` or `C:/…`.
fn is_windows_path(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

/// One file or folder name: not a way up, not a drive, without a separator of any system.
fn is_plain_name(segment: &str) -> bool {
    let mut components = Path::new(segment).components();
    matches!(components.next(), Some(Component::Normal(name)) if name == segment)
        && components.next().is_none()
        && !segment.contains(['/', '\\', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCATION: &str = "file:///home/op/.hyp/caf%C3%A9%20one/table-1";

    fn resolve(location: &str, url: &str) -> Result<PathBuf, Error> {
        Relocation::new(location, Path::new("/copy"), Path::new("v1.metadata.json"))?.resolve(url, Path::new("m0.avro"))
    }

    fn assert_resolves(location: &str, url: &str, expected: &str) {
        assert_eq!(resolve(location, url).as_deref(), Ok(Path::new(expected)), "{url}");
    }

    fn assert_outside(location: &str, url: &str) {
        let error = resolve(location, url).expect_err(url);
        assert_eq!(
            error,
            Error::Outside { path: "m0.avro".into(), url: url.to_owned(), location: location.to_owned() }
        );
    }

    #[test]
    fn takes_a_url_by_its_place_below_the_location() {
        assert_resolves(
            LOCATION,
            "file:///home/op/.hyp/caf%C3%A9%20one/table-1/data/a.parquet",
            "/copy/data/a.parquet",
        );
        assert_resolves(
            LOCATION,
            "file:///home/op/.hyp/caf%c3%a9%20one/table-1/data/a%20b.parquet",
            "/copy/data/a b.parquet",
        );
        assert_resolves(
            LOCATION,
            "file:///home/op/.hyp/café one/table-1/data/100%25.parquet",
            "/copy/data/100%.parquet",
        );
    }

    #[test]
    fn every_spelling_of_a_file_url_is_the_same_place() {
        for location in ["file:///h/t", "file:/h/t", "/h/t", "/h/t/", "FILE:///h/t", "file://localhost/h/t"] {
            for url in
                ["file:///h/t/data/a", "file:/h/t/data/a", "/h/t/data/a", "/h//t/data/a", "file://localhost/h/t/data/a"]
            {
                assert_resolves(location, url, "/copy/data/a");
            }
        }
    }

    #[test]
    fn windows_homes() {
        let location = "file:///C:/Users/An%20Op/.hyp/t";
        assert_resolves(location, "file:///C:/Users/An%20Op/.hyp/t/data/a.parquet", "/copy/data/a.parquet");
        assert_resolves(location, r"C:\Users\An Op\.hyp\t\data\a.parquet", "/copy/data/a.parquet");
        assert_resolves(r"C:\Users\An Op\.hyp\t", "C:/Users/An Op/.hyp/t/data/a.parquet", "/copy/data/a.parquet");
        assert_resolves("file://server/share/t", "file://server/share/t/a", "/copy/a");
        assert_outside(location, "file:///D:/Users/An%20Op/.hyp/t/data/a.parquet");
        assert_outside(location, r"C:\Users\An Op\.hyp\t\data\..\..\a.parquet");
        assert_outside("file://server/share/t", "file:///server/share/t/a");
    }

    #[test]
    fn a_plain_path_is_not_decoded() {
        assert_resolves("/h/t", "/h/t/data/a%20b", "/copy/data/a%20b");
    }

    #[test]
    fn other_schemes_keep_their_host() {
        assert_resolves("s3://bucket/t", "s3://bucket/t/data/a", "/copy/data/a");
        assert_outside("s3://bucket/t", "s3://other/t/data/a");
        assert_outside("s3://bucket/t", "gs://bucket/t/data/a");
    }

    #[test]
    fn rejects_a_way_up() {
        assert_outside("file:///h/t", "file:///h/t/../u/a");
        assert_outside("file:///h/t", "file:///h/t/data/../../u/a");
        assert_outside("file:///h/t", "file:///h/t/%2e%2e/u/a");
        assert_outside("file:///h/t", "file:///h/t/./a");
    }

    #[test]
    fn rejects_a_folder_whose_name_only_begins_alike() {
        assert_outside("file:///h/table-1", "file:///h/table-12/data/a");
        assert_outside("file:///h/table-12", "file:///h/table-1/data/a");
    }

    #[test]
    fn rejects_what_decodes_to_a_separator() {
        assert_outside("file:///h/t", "file:///h/t/%2Fetc%2Fpasswd");
        assert_outside("file:///h/t", "file:///h/t/data%2F..%2F..%2Fu");
        assert_outside("file:///h/t", r"file:///h/t/..\..\u");
        assert_outside("file:///h/t", "file:///h/t/..%5C..%5Cu");
    }

    #[test]
    fn rejects_nul_and_what_is_not_utf8() {
        assert_outside("file:///h/t", "file:///h/t/a%00b");
        assert_outside("file:///h/t", "file:///h/t/a\0b");
        assert_outside("file:///h/t", "file:///h/t/%ff");
    }

    #[test]
    fn rejects_the_location_itself_and_relative_paths() {
        assert_outside("file:///h/t", "file:///h/t");
        assert_outside("file:///h/t", "file:///h/t/");
        assert_outside("file:///h/t", "data/a");
        assert_outside("file:///h/t", "file:data/a");
        assert_outside("file:///h/t", "");
    }

    #[test]
    fn rejects_a_location_that_is_not_absolute() {
        for location in ["", "/", "file://", "table", "file:table"] {
            let error =
                Relocation::new(location, Path::new("/copy"), Path::new("v1.metadata.json")).expect_err(location);
            assert_eq!(
                error.to_string(),
                format!("`v1.metadata.json`: expected an absolute URL or path as `location`, found `{location}`")
            );
        }
    }

    #[test]
    fn spellings_of_one_url_are_equal_in_canonical_form() {
        assert_eq!(canonical("file:///h/t/a%20b"), canonical("file:/h/t/a b"));
        assert_ne!(canonical("file:///h/t/a"), canonical("file:///h/t/b"));
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn nothing_leaves_the_folder(tail in r"([./\\%a-cA-C0-9:\x00]|%2[eEfF]|%5[cC]){0,24}") {
                if let Ok(path) = resolve("file:///h/t", &format!("file:///h/t/{tail}")) {
                    let inner = path.strip_prefix("/copy").expect("below the folder");
                    prop_assert!(inner.components().all(|c| matches!(c, Component::Normal(_))));
                }
            }
        }
    }
}
