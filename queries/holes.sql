-- name: holes
-- purpose: ranges of seqs that no generation of a partition has, and who has them instead
-- param: dataset DATASET = ai_gateway_messages  the dataset
-- param: partition PARTITION = source=claude  the partition's path
-- param: from BIGINT = 1  first seq
-- param: to BIGINT  last seq
WITH seqs AS (
  SELECT seq, CASE WHEN dataset <> $dataset OR partition <> $partition THEN concat(dataset, ' ', partition) END AS owner
  FROM cache.seqs
  WHERE seq BETWEEN $from AND $to
  UNION ALL SELECT $from - 1, NULL
),
others AS (
  SELECT owner, before, seq
  FROM (SELECT *, max(CASE WHEN owner IS NULL THEN seq END) OVER (ORDER BY seq) AS before FROM seqs)
  WHERE owner IS NOT NULL
),
holes AS (
  SELECT before, coalesce(after - 1, $to) AS last, (SELECT min(next_seq) FROM cache.allocator) AS next
  FROM (SELECT seq AS before, lead(seq) OVER (ORDER BY seq) AS after FROM seqs WHERE owner IS NULL)
),
counted AS (
  SELECT h.before + 1 AS from_seq, h.last AS to_seq, h.last - h.before AS seqs, count(DISTINCT o.seq) AS elsewhere,
         CASE WHEN h.next IS NOT NULL THEN
           greatest(h.last - greatest(h.before, h.next - 1), 0) - count(DISTINCT o.seq) FILTER (WHERE o.seq >= h.next)
         END AS unallocated,
         string_agg(DISTINCT o.owner, ', ') AS owners
  FROM holes h LEFT JOIN others o ON o.before = h.before
  WHERE h.last > h.before
  GROUP BY h.before, h.last, h.next
)
-- What is neither is gone with every generation that had it, or was lost in a crash; without the allocator nobody can tell.
SELECT from_seq, to_seq, seqs, elsewhere, unallocated, seqs - elsewhere - unallocated AS unknown, owners
FROM counted
ORDER BY from_seq
