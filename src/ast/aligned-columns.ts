/**
 * Rows of a table as lines, whose cells stand under each other.
 * @param toRight whether column `k` of `n` ends where its widest cell does, as numbers do; others begin at one place
 */
export function alignedColumns(
  rows: readonly (readonly string[])[],
  toRight: (k: number, n: number) => boolean = () => false,
): string[] {
  const widths = (rows[0] ?? []).map((_, k) => Math.max(...rows.map((r) => r[k]!.length)))
  return rows.map((r) =>
    r
      .map((cell, k) => (toRight(k, r.length) ? cell.padStart(widths[k]!) : cell.padEnd(widths[k]!)))
      .join('  ')
      .trimEnd(),
  )
}
