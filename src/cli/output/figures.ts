/** Formats numbers for reports. */
import { alignedColumns } from '../../ast/print/message-text.ts'

export const count = (n: number): string =>
  // Equal to `toLocaleString`, which first loads locale data (40 ms).
  Number.isSafeInteger(n) ? String(n).replace(/\B(?=(?:\d{3})+$)/g, ',') : n.toLocaleString('en-US')

export function size(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB']
  const k = bytes < 1024 ? 0 : Math.min(3, Math.floor(Math.log2(bytes) / 10))
  return `${k === 0 ? count(bytes) : (bytes / 2 ** (10 * k)).toFixed(1)} ${units[k]}`
}

export const ms = (t: number): string =>
  `${t >= 100 ? t.toFixed(0) : t >= 1 ? t.toFixed(2) : t.toPrecision(3)} ms`

export const percent = (share: number): string =>
  share === 0 ? '0 %' : share < 0.0001 ? '< 0.01 %' : `${(100 * share).toFixed(share < 0.01 ? 2 : 1)} %`

/** Replacer for `JSON.stringify`: infinities and NaN become strings. */
export const jsonNumber = (_: string, value: unknown): unknown =>
  typeof value === 'number' && !Number.isFinite(value) ? String(value) : value

/** Texts of a report by name; lines without a text are left out, and further texts of a name follow below the first. */
export type Lines = Readonly<Record<string, string | readonly string[] | null | undefined>>

/** Two columns: names with at least `width` characters, and texts. */
export function linesText(lines: Lines, { width = 0, gap = '  ', indent = '' } = {}): string {
  const rows = Object.entries(lines).flatMap(([name, text]) =>
    [text ?? []].flat().flatMap((t, k) => (t === '' ? [] : [[k === 0 ? name : '', t] as const])),
  )
  const nameWidth = Math.max(width, ...rows.map(([name]) => name.length))
  return rows.map(([name, text]) => `${indent}${name.padEnd(nameWidth)}${gap}${text}\n`).join('')
}

/** Aligned columns: the first left-aligned, numbers right-aligned, the last unchanged. */
export const table = (rows: readonly (readonly string[])[]): string[] =>
  alignedColumns(rows, (k, n) => k > 0 && k < n - 1)
