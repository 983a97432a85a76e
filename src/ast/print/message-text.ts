/** Text of messages and reports: names with arguments, counts, aligned columns. */

/**
 * A format with its arguments. A named format lists them behind its name; in a composition written in place, each
 * argument replaces its parameter.
 */
export function appliedFormat(
  name: string,
  params: readonly { readonly name: string }[],
  args: readonly string[],
): string {
  if (/^\w+$/.test(name)) return appliedName(name, args)
  const texts = new Map(args.map((a, k) => [params[k]!.name, a]))
  return name.replace(/[A-Za-z_][\w.]*(?![\w.]|\s*\()/g, (word) => texts.get(word) ?? word)
}

/** `name(1, 2)`, or `name` without arguments: the spelling of schedules, formats, instances and features. */
export const appliedName = (name: string, args: readonly (string | number | boolean)[]): string =>
  args.length > 0 ? `${name}(${args.join(', ')})` : name

/** A count as text; beyond the exact integers of a number, its digits would be wrong. */
export const countText = (count: number): string =>
  count <= Number.MAX_SAFE_INTEGER ? String(count) : 'more than 9007199254740991'

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
