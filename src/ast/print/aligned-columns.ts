/**
 * Formats rows of a table as lines with aligned columns. @param toRight true if column `k` of `n` is right-aligned, as
 * numbers are; other columns are left-aligned
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
