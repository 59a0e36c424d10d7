//! Finds the partitions below `datasets/` and the generations in each.

use std::path::Path;

use crate::folder::{self, Entry};
use crate::{Cursor, Found, Generation, Partition, PartitionId, Problem, cursor, generation};

/// The folder of captured rows that wait for a flush.
pub(crate) const SPOOL: &str = "_hypaware_spool";

/// Every partition, by dataset and path.
pub(crate) fn partitions(datasets: &Path) -> Found<Vec<Partition>> {
    let mut walk = Walk::default();
    for dataset in folder::folders(datasets, &mut walk.problems) {
        walk.folder(&dataset.path, &PartitionId { dataset: dataset.name, path: String::new() });
    }
    walk.partitions.sort_by(|a, b| a.id.cmp(&b.id));
    Found { value: walk.partitions, problems: walk.problems }
}

#[derive(Default)]
struct Walk {
    partitions: Vec<Partition>,
    problems: Vec<Problem>,
}

impl Walk {
    fn folder(&mut self, dir: &Path, id: &PartitionId) {
        let entries = folder::list(dir, &mut self.problems);
        let (folders, files): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(|entry| entry.is_dir);
        let has_cursor = files.iter().any(|file| file.name == "cursor.json");
        let is_table = folders.iter().any(|folder| folder.name == "metadata");
        let has_generations = folders.iter().any(|folder| generation::is_generation_name(&folder.name));
        let is_partition = has_cursor || is_table || has_generations;

        let mut live_name = None;
        if is_partition {
            let cursor = self.cursor(dir, has_cursor, has_generations);
            live_name = cursor.as_ref().ok().map(Cursor::live_name);
            let mut generations: Vec<Generation> = folders
                .iter()
                .filter(|folder| generation::is_generation(&folder.name, live_name.as_deref()))
                .map(|folder| Generation::read(&folder.name, &folder.path, &mut self.problems))
                .collect();
            if is_table {
                generations.push(Generation::read(".", dir, &mut self.problems));
            }
            generation::sort_by_age(&mut generations);
            let mut partition = Partition { id: id.clone(), dir: dir.to_owned(), cursor, generations };
            generation::settle(&mut partition, &mut self.problems);
            self.partitions.push(partition);
        }

        for folder in folders {
            let is_part_of_table = is_table && matches!(folder.name.as_str(), "metadata" | "data");
            let is_generation = is_partition && generation::is_generation(&folder.name, live_name.as_deref());
            if folder.name == SPOOL || is_part_of_table || is_generation {
                continue;
            }
            let path = match id.path.as_str() {
                "" => folder.name,
                parent => format!("{parent}/{}", folder.name),
            };
            let dataset = id.dataset.clone();
            self.folder(&folder.path, &PartitionId { dataset, path });
        }
    }

    fn cursor(&mut self, dir: &Path, has_cursor: bool, has_generations: bool) -> Result<Cursor, Problem> {
        let path = dir.join("cursor.json");
        let cursor = if has_cursor {
            cursor::read(&path, &mut self.problems)
        } else if has_generations {
            Err(Problem::error(
                "cursor-missing",
                &path,
                "expected a cursor beside the generations, found none",
                "which generation is live is unknown: compare all of them, or put back cursor.json from a backup; \
                 HypAware itself does not see this partition",
            ))
        } else {
            Ok(Cursor::OLDEST_FORM)
        };
        self.problems.extend(cursor.as_ref().err().cloned());
        cursor
    }
}
