//! Which homes, and which partition of them, a command is about.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hypseq_cache::{Home, Partition, PartitionId};

use crate::cli::Global;

/// A home that was named, or why it is none.
pub type Candidate = Result<Home, hypseq_cache::Error>;

/// Opens every home or cache root that was named, globs expanded. One that is none does not stop the others.
///
/// # Errors
/// Nothing was named that could be a home.
pub fn homes(global: &Global) -> Result<Vec<Candidate>> {
    if !global.cache.is_empty() {
        return open_all(&global.cache, Home::open_cache);
    }
    if !global.home.is_empty() {
        return open_all(&global.home, Home::open);
    }
    let home = match std::env::var_os("HYP_HOME").filter(|v| !v.is_empty()) {
        Some(home) => PathBuf::from(home),
        None => std::env::home_dir().context("there is no home directory\n  hint: name one with --home")?.join(".hyp"),
    };
    Ok(vec![Home::open(&home)])
}

fn open_all(patterns: &[String], open: fn(&Path) -> Candidate) -> Result<Vec<Candidate>> {
    let mut homes = Vec::new();
    let mut known = HashSet::new();
    for pattern in patterns {
        for path in expand(pattern)? {
            // A home that was named twice would be counted twice.
            if path.canonicalize().map_or(true, |real| known.insert(real)) {
                homes.push(open(&path));
            }
        }
    }
    Ok(homes)
}

/// A path that exists is taken as it is; what looks like a glob otherwise must match something.
fn expand(pattern: &str) -> Result<Vec<PathBuf>> {
    let plain = PathBuf::from(pattern);
    if plain.exists() || !pattern.contains(['*', '?', '[']) {
        return Ok(vec![plain]);
    }
    let paths = glob::glob(pattern).with_context(|| format!("`{pattern}` is not a glob"))?;
    let paths: Vec<PathBuf> = paths.filter_map(Result::ok).filter(|p| p.is_dir()).collect();
    if paths.is_empty() {
        bail!("`{pattern}` matches no folder");
    }
    Ok(paths)
}

/// The one home of a command that cannot work on several.
pub fn one_home(global: &Global, what: &str) -> Result<Home> {
    let mut homes = homes(global)?.into_iter().collect::<Result<Vec<Home>, _>>()?;
    if homes.len() > 1 {
        let names: Vec<&str> = homes.iter().map(Home::name).collect();
        bail!("{what} works on one home, {} were named: {}", homes.len(), names.join(", "));
    }
    homes.pop().context("no home was named\n  hint: name one with --home")
}

/// The partitions that dataset and path leave over.
pub fn partitions<'a>(
    all: &'a [Partition],
    dataset: Option<&str>,
    path: Option<&str>,
) -> impl Iterator<Item = &'a Partition> {
    all.iter().filter(move |p| {
        dataset.is_none_or(|d| p.id.dataset == d) && path.is_none_or(|wanted| p.id.path == wanted.trim_matches('/'))
    })
}

/// The only partition that dataset and path leave over.
pub fn one_partition<'a>(all: &'a [Partition], dataset: Option<&str>, path: Option<&str>) -> Result<&'a Partition> {
    let fitting: Vec<&Partition> = partitions(all, dataset, path).collect();
    match fitting.as_slice() {
        [one] => Ok(one),
        [] if all.is_empty() => bail!("there is no partition in this cache"),
        [] => bail!("no partition fits {}\n  hint: there are:\n{}", wanted(dataset, path), candidates(all.iter())),
        several => bail!(
            "{} partitions fit{}\n  hint: name one of:\n{}",
            several.len(),
            if dataset.is_none() && path.is_none() { String::new() } else { format!(" {}", wanted(dataset, path)) },
            candidates(several.iter().copied()),
        ),
    }
}

fn wanted(dataset: Option<&str>, path: Option<&str>) -> String {
    let parts = [dataset.map(|d| format!("--dataset {}", quote(d))), path.map(|p| format!("--partition {}", quote(p)))];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn candidates<'a>(partitions: impl Iterator<Item = &'a Partition>) -> String {
    partitions.map(|p| format!("    {}", flags(&p.id))).collect::<Vec<_>>().join("\n")
}

/// The options that name a partition, as they can be typed.
pub fn flags(id: &PartitionId) -> String {
    format!("--dataset {} --partition {}", quote(&id.dataset), quote(&id.path))
}

/// A command on a home, as it can be typed.
pub fn command(home: &Home, rest: &str) -> String {
    format!("hypseq --home {} {rest}", quote(&home.root().to_string_lossy()))
}

/// A partition as it is named in sentences.
pub fn name(id: &PartitionId) -> String {
    if id.path.is_empty() { id.dataset.clone() } else { format!("{} {}", id.dataset, id.path) }
}

/// Quotes an argument for a POSIX shell where it needs it.
pub fn quote(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:@,+%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quote("source=claude"), "source=claude");
        assert_eq!(quote("2026-07-28T21:00:00Z"), "2026-07-28T21:00:00Z");
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
    }
}
