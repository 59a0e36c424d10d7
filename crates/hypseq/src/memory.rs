//! How much memory queries may use before they spill to disk.

use hypseq_engine::EngineOptions;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::cli::Memory;

/// The engine's options: the limit that was asked for, else half of the machine's memory.
pub fn options(memory: &Memory) -> EngineOptions {
    let limit = memory.memory_limit.map_or_else(|| total() / 2, |limit| limit.as_u64());
    EngineOptions { memory_limit: Some(usize::try_from(limit).unwrap_or(usize::MAX)), ..EngineOptions::default() }
}

/// Bytes of memory that the machine has, or the control group that the program runs in.
fn total() -> u64 {
    let ram = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(ram);
    let of_group = system.cgroup_limits().map(|limits| limits.total_memory).filter(|bytes| *bytes > 0);
    of_group.unwrap_or(u64::MAX).min(system.total_memory())
}
