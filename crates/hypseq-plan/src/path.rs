//! Where a watermark lies below the state root, derived from what it belongs to and checked component by
//! component, so that a plan can never name a file elsewhere.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Sink;

/// Why a text is not the path of a watermark.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It begins at the root of the file system or names a drive.
    #[error("watermark path {0:?} is absolute; expected a path relative to the state root")]
    Absolute(String),
    /// It has a component that no watermark path has.
    #[error("watermark path {path:?} has the component {component:?}; expected names only")]
    Component {
        /// The path.
        path: String,
        /// The empty, relative or unclean component.
        component: String,
    },
    /// It is not of the shape of a watermark path.
    #[error(
        "watermark path {0:?} is not plugins/<plugin>/sink-instances/<instance>/watermarks/<dataset>/<partition>.json"
    )]
    Shape(String),
}

/// The path of a watermark relative to the state root, `/`-separated:
/// `plugins/<plugin>/sink-instances/<instance>/watermarks/<dataset>/<partition…>.json`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = r"^plugins/.+/sink-instances/[^/]+/watermarks/[^/]+/.+\.json$"))]
pub struct WatermarkPath(String);

impl WatermarkPath {
    /// The watermark of one sink instance and partition, where HypAware keeps it: below the dataset the file
    /// mirrors the partition's path, each character outside `[A-Za-z0-9._=,-]` replaced by `_`; a dataset
    /// without partition segments (`partition` empty) uses `_partition.json`.
    ///
    /// # Errors
    ///
    /// When a name is empty, is `.` or `..`, or would take another number of components than it should.
    pub fn new(sink: &Sink, dataset: &str, partition: &str) -> Result<Self, PathError> {
        let instance = sink.instance_path()?;
        let partition = if partition.is_empty() { "_partition".to_owned() } else { sanitise(partition) };
        let path = format!("{instance}/watermarks/{dataset}/{partition}.json");
        if dataset.contains('/') { Err(PathError::Shape(path)) } else { path.try_into() }
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The watermark's place under `state_root`.
    pub fn under(&self, state_root: &Path) -> PathBuf {
        self.0.split('/').fold(state_root.to_owned(), |path, component| path.join(component))
    }
}

impl Sink {
    /// The folder of the sink instance, relative to the state root: `plugins/<plugin>/sink-instances/<instance>`.
    pub(crate) fn instance_path(&self) -> Result<String, PathError> {
        let path = format!("plugins/{}/sink-instances/{}", self.plugin, self.instance);
        if self.plugin.split('/').count() > 2 || self.instance.contains('/') {
            return Err(PathError::Shape(path));
        }
        check_components(&path)?;
        Ok(path)
    }
}

fn check_components(path: &str) -> Result<(), PathError> {
    let unclean = |c: char| matches!(c, '\\' | ':') || c.is_control();
    match path.split('/').find(|name| matches!(*name, "" | "." | "..") || name.contains(unclean)) {
        Some(component) => Err(PathError::Component { path: path.to_owned(), component: component.to_owned() }),
        None => Ok(()),
    }
}

fn sanitise(partition: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || "._=,-/".contains(c);
    partition.chars().map(|c| if keep(c) { c } else { '_' }).collect()
}

impl TryFrom<String> for WatermarkPath {
    type Error = PathError;

    fn try_from(path: String) -> Result<Self, PathError> {
        if path.starts_with(['/', '\\']) || path.chars().nth(1) == Some(':') {
            return Err(PathError::Absolute(path));
        }
        check_components(&path)?;
        let names: Vec<&str> = path.split('/').collect();
        let below_plugin = |plugin_names: usize| {
            let shape = names.get(plugin_names..);
            matches!(shape, Some([sinks, _, marks, _, _, ..]) if *sinks == "sink-instances" && *marks == "watermarks")
        };
        let stem = names.last().and_then(|name| name.strip_suffix(".json"));
        if names.first() == Some(&"plugins")
            && (below_plugin(2) || below_plugin(3))
            && stem.is_some_and(|stem| !matches!(stem, "" | "." | ".."))
        {
            Ok(Self(path))
        } else {
            Err(PathError::Shape(path))
        }
    }
}

impl From<WatermarkPath> for String {
    fn from(path: WatermarkPath) -> Self {
        path.0
    }
}

impl fmt::Display for WatermarkPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sink(plugin: &str, instance: &str) -> Sink {
        Sink { plugin: plugin.to_owned(), instance: instance.to_owned() }
    }

    #[test]
    fn mirrors_the_partition() {
        let path =
            |plugin, dataset, partition| WatermarkPath::new(&sink(plugin, "central"), dataset, partition).unwrap().0;
        assert_eq!(
            path("@hypaware/central", "ai_gateway_messages", "source=claude"),
            "plugins/@hypaware/central/sink-instances/central/watermarks/ai_gateway_messages/source=claude.json"
        );
        assert_eq!(path("p", "logs", ""), "plugins/p/sink-instances/central/watermarks/logs/_partition.json");
        assert_eq!(
            path("p", "d", "client=a b:é/date=2026-07-28"),
            "plugins/p/sink-instances/central/watermarks/d/client=a_b__/date=2026-07-28.json"
        );
    }

    #[test]
    fn refuses_names_that_lead_elsewhere() {
        let new = |plugin, instance, dataset, partition| {
            WatermarkPath::new(&sink(plugin, instance), dataset, partition).unwrap_err()
        };
        assert!(matches!(new("..", "i", "d", "p"), PathError::Component { component, .. } if component == ".."));
        assert!(matches!(new("p", "..", "d", "p"), PathError::Component { .. }));
        assert!(matches!(new("p", "i", "..", "p"), PathError::Component { .. }));
        assert!(matches!(new("p", "i", "d", "../x"), PathError::Component { .. }));
        assert!(matches!(new("p", "i", "d", "x//y"), PathError::Component { .. }));
        assert!(matches!(new("", "i", "d", "p"), PathError::Component { component, .. } if component.is_empty()));
        assert!(matches!(new("p", "i", "", "p"), PathError::Component { .. }));
        assert!(matches!(new("p", "a/b", "d", "p"), PathError::Shape(_)));
        assert!(matches!(new("p", "i", "a/b", "p"), PathError::Shape(_)));
        assert!(matches!(new("a/b/c", "i", "d", "p"), PathError::Shape(_)));
    }

    #[test]
    fn refuses_every_other_shape() {
        let parse = |path: &str| WatermarkPath::try_from(path.to_owned()).unwrap_err();
        let good = "plugins/@a/b/sink-instances/i/watermarks/d/p.json";
        assert!(WatermarkPath::try_from(good.to_owned()).is_ok());
        for absolute in ["/plugins/p", "\\plugins", "C:/x", "c:\\x"] {
            assert!(matches!(parse(absolute), PathError::Absolute(_)), "{absolute}");
        }
        for (from, to) in
            [("/p.json", "/../p.json"), ("@a", "."), ("/d/", "//"), ("@a/", "@a\\"), ("i/", "i:/"), ("p.", "p\n.")]
        {
            let path = good.replace(from, to);
            assert!(matches!(parse(&path), PathError::Component { .. }), "{path}");
        }
        for shape in [
            "",
            "plugins/p.json",
            "cache/@a/b/sink-instances/i/watermarks/d/p.json",
            "plugins/@a/b/sinks/i/watermarks/d/p.json",
            "plugins/@a/b/sink-instances/i/marks/d/p.json",
            "plugins/@a/b/sink-instances/i/watermarks/p.json",
            "plugins/@a/b/sink-instances/i/watermarks/d/p.txt",
            "plugins/@a/b/sink-instances/i/watermarks/d/.json",
            "plugins/a/b/c/sink-instances/i/watermarks/d/p.json",
        ] {
            let error = parse(shape);
            assert!(matches!(error, PathError::Shape(_)) || shape.is_empty(), "{shape}: {error}");
        }
    }
}
