//! Files that are on disk when a call returns, and paths that do not lead through symbolic links.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Creates a file anew and flushes it, with the mode and owner of `like`, or else for its owner only.
///
/// Whatever stood there before is removed, never opened: it may be a link. A file that cannot be finished
/// is left for the caller to remove.
pub(crate) fn create(path: &Path, bytes: &[u8], like: Option<&Metadata>) -> io::Result<()> {
    remove_if_there(path)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    if let Some(like) = like {
        keep_owner(&file, like)?;
        file.set_permissions(like.permissions())?;
    }
    file.sync_all()
}

/// Gives a file the owner and group of another; needs no right where they are the same already.
#[cfg(unix)]
pub(crate) fn keep_owner(file: &File, like: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (like.uid(), like.gid()) {
        return Ok(());
    }
    fchown(file, Some(like.uid()), Some(like.gid())).map_err(|e| {
        let (user, group) = (like.uid(), like.gid());
        io::Error::new(e.kind(), format!("it belongs to user {user} and group {group}, and would not any more: {e}"))
    })
}

#[cfg(not(unix))]
pub(crate) fn keep_owner(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Flushes a folder, so that a rename in it survives a loss of power.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Removes a file and says whether there was one.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<bool> {
    Ok(none_if_missing(fs::remove_file(path))?.is_some())
}

/// A result without the error that there is no such file.
pub(crate) fn none_if_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// What stands at the end of a `/`-separated path below `root`.
#[derive(Debug)]
pub(crate) enum Walk {
    /// A folder or file that no symbolic link leads to. The root itself may be one: it was named by a person.
    Found(Metadata),
    /// Nothing.
    Missing,
    /// A symbolic link, at the end or before it.
    Link(PathBuf),
    /// Something that is not a folder stands in the way.
    NotAFolder(PathBuf),
}

/// Follows a path below `root` component by component.
pub(crate) fn walk(root: &Path, relative: &str) -> io::Result<Walk> {
    let mut path = root.to_owned();
    let mut last = None;
    for name in relative.split('/') {
        if last.as_ref().is_some_and(|m: &Metadata| !m.is_dir()) {
            return Ok(Walk::NotAFolder(path));
        }
        path.push(name);
        match none_if_missing(fs::symlink_metadata(&path))? {
            None => return Ok(Walk::Missing),
            Some(found) if found.is_symlink() => return Ok(Walk::Link(path)),
            found => last = found,
        }
    }
    Ok(last.map_or(Walk::Missing, Walk::Found))
}
