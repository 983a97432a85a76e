/** SVG output with escaped text and short numbers. */

/** Escapes text for elements and attributes; characters that XML 1.0 cannot represent are replaced. */
export function escapeXml(text: string): string {
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: XML forbids them.
      .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd')
      .replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd')
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('"', '&quot;')
  )
}

export const count = (n: number): string => n.toLocaleString('en-US')
export const percent = (share: number): string =>
  share === 0 ? '0 %' : share < 0.001 ? '< 0.1 %' : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`

const formatNumber = (x: number): string => String(Math.round(x * 100) / 100)

type Attributes = Readonly<Record<string, string | number>>

const attributes = (a: Attributes): string =>
  Object.entries(a)
    .map(
      ([name, value]) => ` ${name}="${typeof value === 'number' ? formatNumber(value) : escapeXml(value)}"`,
    )
    .join('')

export const element = (name: string, a: Attributes, content = ''): string =>
  content === '' ? `<${name}${attributes(a)}/>` : `<${name}${attributes(a)}>${content}</${name}>`

export const text = (x: number, y: number, content: string, a: Attributes = {}): string =>
  element('text', { x, y, ...a }, escapeXml(content))

/** Truncates a text to `width` pixels at a font size. */
export function fitText(content: string, width: number, size: number): string {
  const maxChars = Math.max(1, Math.floor(width / (0.56 * size)))
  return content.length <= maxChars ? content : `${content.slice(0, maxChars - 1).trimEnd()}…`
}

/** Path data of rectangles; callers join adjacent ones. */
export class Rectangles {
  #data = ''

  add(x: number, y: number, width: number, height: number): void {
    this.#data += `M${formatNumber(x)} ${formatNumber(y)}h${formatNumber(width)}v${formatNumber(height)}h${formatNumber(-width)}z`
  }

  /** The path element; '' without rectangles. */
  path(a: Attributes): string {
    return this.#data === '' ? '' : element('path', { ...a, d: this.#data })
  }
}

/** Colours that can be distinguished on light and dark backgrounds. */
const COLORS: readonly string[] = [
  '#3f7fbf',
  '#e2703a',
  '#3c9a5f',
  '#c2519b',
  '#b8951f',
  '#7a68c7',
  '#2fa3a8',
  '#c9474f',
  '#7c9a2d',
  '#a0714a',
]

/** Colour of part k. */
export const colorOf = (k: number): string =>
  COLORS[k] ?? `hsl(${Math.round((k * 137.508 + 40) % 360)} 48% 52%)`

/** Colours of parts: a hue for each column range (`p0`, `p1`, …), and lightness by bucket within it. */
export function partColors(labels: readonly string[]): readonly string[] {
  const ranges = labels.map((label) => /^(.*)_w\d+$/.exec(label)?.[1] ?? label)
  const names = [...new Set(ranges)]
  if (names.length === labels.length) return labels.map((_, k) => colorOf(k))
  return ranges.map((range, k) => {
    const bucket = ranges.slice(0, k).filter((r) => r === range).length
    const buckets = ranges.filter((r) => r === range).length
    const hue = (210 + names.indexOf(range) * 137.508) % 360
    return `hsl(${Math.round(hue)} 55% ${Math.round(75 - (45 * bucket) / Math.max(1, buckets - 1))}%)`
  })
}

/** Colour of text and lines: contrast of at least 4.5 on white and on black. */
export const NEUTRAL = '#767676'

// Grids of cells: shades by count, and rectangles that cover cells.

/** Partition of elements into a grid of cells with a maximum size, on whole pixels. */
export interface Grid {
  readonly columns: number
  readonly rows: number
  /** Elements of a cell in each direction. */
  readonly across: number
  readonly down: number
  /** Pixels of a cell. */
  readonly width: number
  readonly height: number
}

/** A direction of a grid: number of cells, elements of a cell, pixels of a cell. */
export interface GridSide {
  readonly cells: number
  readonly bin: number
  readonly cell: number
}

export const gridBy = (x: GridSide, y: GridSide): Grid => ({
  columns: x.cells,
  rows: y.cells,
  across: x.bin,
  down: y.bin,
  width: x.cell,
  height: y.cell,
})

/** A drawing with its size in pixels. */
export interface Panel {
  readonly content: string
  readonly width: number
  readonly height: number
}

/** Opacities of cells, faintest first. */
export const SHADES: readonly number[] = [0.42, 0.55, 0.7, 0.85, 1]

/** Logarithmic shade, from 1 to the number of shades, of a positive amount up to `max`; 0 for an amount of 0. */
export function shadeOf(amount: number, max: number): number {
  if (amount <= 0) return 0
  return 1 + Math.floor(((SHADES.length - 0.01) * Math.log1p(amount)) / Math.log1p(Math.max(amount, max)))
}

/**
 * Rectangles that cover the cells of each positive key; neighbours in a row are joined.
 * @param gap - Free pixels at the right and the bottom of each cell; with a gap, cells are not joined
 */
export function cellsByKey(
  grid: Grid,
  keyOf: (cell: number) => number,
  x: number,
  y: number,
  gap = 0,
): ReadonlyMap<number, Rectangles> {
  const out = new Map<number, Rectangles>()
  const { columns, rows, width, height } = grid
  for (let r = 0; r < rows; r++)
    for (let c = 0; c < columns; ) {
      const key = keyOf(r * columns + c)
      let end = c + 1
      if (gap === 0) while (end < columns && keyOf(r * columns + end) === key) end++
      if (key > 0) {
        let cells = out.get(key)
        if (!cells) out.set(key, (cells = new Rectangles()))
        cells.add(x + c * width, y + r * height, (end - c) * width - gap, height - gap)
      }
      c = end
    }
  return out
}
