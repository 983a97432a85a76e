/** Parse trees as text, for caches; runs in browsers. */
import { type Source, type Span, spanIn } from '../../ast/diagnostics/span.ts'
import { inPackage } from '../../ast/imports/resolve-path.ts'
import type { File } from '../../ast/nodes/nodes.ts'

/**
 * Encodings of values that JSON cannot represent. Sources cannot contain them, because their quotes are escaped. The
 * file name is not part of the content; infinity is encoded as an overflowing number; NaN is the only value encoded as
 * null.
 */
const NAMED = '"source":0'
const INFINITE = ['"value":-1', '"value":1e999'] as const
const NAN = '"value":null'

export function encodeTree(file: File): string {
  const text = JSON.stringify(file, (key, value: unknown) =>
    key === 'source' ? 0 : value === Number.POSITIVE_INFINITY ? -1 : value,
  )
  let last = 0
  const relative = text.replaceAll(SPAN, (_, start: string, end: string) => {
    const text = `"source":0,"start":${Number(start) - last},"end":${Number(end) - Number(start)}`
    last = Number(start)
    return text
  })
  return relative.replaceAll(...INFINITE)
}

/** A span; stored relative to the previous span and to its start, which compresses to two thirds. */
const SPAN = /"source":0,"start":(-?\d+),"end":(\d+)/g

export function decodeTree(encoded: string, source: Source): File {
  let last = 0
  const text = encoded.replaceAll(SPAN, (_, start: string, length: string) => {
    last += Number(start)
    return `"source":0,"start":${last},"end":${last + Number(length)}`
  })
  const withNaN = (key: string, value: unknown) => (key === 'value' && value === null ? Number.NaN : value)
  const file = JSON.parse(
    text.replaceAll(NAMED, () => `"source":${JSON.stringify(source.name)}`),
    text.includes(NAN) ? withNaN : undefined,
  ) as File
  // The largest files are the package's, whose names are unique.
  if (!inPackage(source.name)) attachSource(file, source)
  return file
}

const isSpan = (x: object): x is Span => 'source' in x && 'start' in x && 'end' in x

/** Adds the source text to the spans of a decoded tree. */
function attachSource(node: object, source: Source): void {
  for (const [key, value] of Object.entries(node) as [keyof typeof node, unknown][]) {
    if (typeof value !== 'object' || value === null) continue
    if (isSpan(value)) Object.assign(node, { [key]: spanIn(source, value.start, value.end) })
    else attachSource(value, source)
  }
}
