//! The runs of a stretch of seqs: which rows lie on which side of a time, in seq order.
//!
//! A file that lies in the stretch whole and on one side whole is a block of rows that need not be read, as long as no row
//! of the other side may lie between its own. A block that ends a run is read all the same, for the seq of its last row.

use hypseq_boundary::{Run, Side};

use super::{Doubt, LazyFile, LazyScan};

/// Rows of one side, with nothing of the other side between the first and the last.
struct Piece<'s, 'a> {
    lo: i64,
    hi: i64,
    side: Side,
    rows: u64,
    /// The file, where it has not been read.
    block: Option<&'s LazyFile<'a>>,
}

impl<'a> LazyScan<'a> {
    pub(super) fn find_runs(&self, at: i64, after: i64, up_to: i64) -> Result<Vec<Run>, Doubt> {
        let inside = |file: &&LazyFile| {
            file.extent.may_matter()
                && !file.extent.time.is_empty()
                && file.extent.seq.lo <= up_to
                && file.extent.seq.hi > after
        };
        let mut pieces: Vec<Piece<'_, 'a>> = Vec::new();
        let mut open: Vec<&LazyFile<'a>> = Vec::new();
        for file in self.files.iter().filter(inside) {
            match block(file, at, after, up_to) {
                Some(block) => pieces.push(block),
                None => open.push(file),
            }
        }
        loop {
            self.load(&open)?;
            for file in open.drain(..) {
                let rows = self.rows(file)?.visible.between(after, up_to).iter();
                pieces.extend(rows.filter_map(|row| {
                    let side = Side::of(row.time?, at);
                    Some(Piece { lo: row.seq, hi: row.seq, side, rows: 1, block: None })
                }));
            }
            pieces.sort_unstable_by_key(|piece| piece.lo);
            open = mixed(&pieces);
            if open.is_empty() {
                let (runs, ends) = runs(&pieces);
                if ends.is_empty() {
                    return Ok(runs);
                }
                open = ends;
            }
            let read = |piece: &Piece| piece.block.is_some_and(|file| open.iter().any(|o| std::ptr::eq(*o, file)));
            pieces.retain(|piece| !read(piece));
        }
    }
}

fn block<'s, 'a>(file: &'s LazyFile<'a>, at: i64, after: i64, up_to: i64) -> Option<Piece<'s, 'a>> {
    let extent = &file.extent;
    let whole = extent.seq.lo > after && extent.seq.hi <= up_to && file.loaded.get().is_none();
    let (side, rows) = extent.side(at).zip(extent.counted()).filter(|_| whole)?;
    Some(Piece { lo: extent.seq.lo, hi: extent.seq.hi, side, rows, block: Some(file) })
}

/// The blocks that may have rows of the other side between their own. The pieces are in the order of their first seqs.
fn mixed<'s, 'a>(pieces: &[Piece<'s, 'a>]) -> Vec<&'s LazyFile<'a>> {
    let reach = |side: Side| -> (Vec<i64>, Vec<i64>) {
        let mut reach = i64::MIN;
        let of_side = pieces.iter().filter(|piece| piece.side == side);
        of_side
            .map(|piece| {
                reach = reach.max(piece.hi);
                (piece.lo, reach)
            })
            .unzip()
    };
    let (before, after) = (reach(Side::AtOrBefore), reach(Side::After));
    let meets_other_side = |piece: &Piece| {
        let (starts, reaches) = if piece.side == Side::After { &before } else { &after };
        let begun = starts.partition_point(|lo| *lo <= piece.hi);
        begun.checked_sub(1).and_then(|last| reaches.get(last)).is_some_and(|reach| *reach >= piece.lo)
    };
    pieces.iter().filter(|piece| meets_other_side(piece)).filter_map(|piece| piece.block).collect()
}

/// The runs, and the blocks that end one.
fn runs<'s, 'a>(pieces: &[Piece<'s, 'a>]) -> (Vec<Run>, Vec<&'s LazyFile<'a>>) {
    let mut ends = Vec::new();
    let mut run = |pieces: &[Piece<'s, 'a>]| {
        let last = pieces.iter().max_by_key(|piece| piece.hi)?;
        ends.extend(last.block);
        Some(Run { side: last.side, rows: pieces.iter().map(|piece| piece.rows).sum(), last_seq: last.hi })
    };
    let runs = pieces.chunk_by(|a, b| a.side == b.side).filter_map(&mut run).collect();
    (runs, ends)
}
