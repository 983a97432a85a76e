/**
 * Tensors in formats as SVG: the matrix with its parts, and how each part is stored. Made of axes, maps and positions
 * alone, so that every format can be drawn.
 */
import { convertTensor, heldEntries, partsToCoords, type StoredParts } from '../convert.ts'
import type { CoordTensor } from '../tensor.ts'
import { type Boxes, blocksOf, cutsOf, elementsOf } from './blocks.ts'
import { drawMatrix, type MatrixPanel, type MatrixPart } from './matrix.ts'
import { drawStorage, HATCHING, type StoragePart } from './storage.ts'
import { colorOf, count, element, escaped, fitted, NEUTRAL, percent, text } from './svg.ts'

const WIDTH = 960
const MARGIN = 24
const LINE = 18
/** Above this, elements that the tensor does not hold are not drawn in the matrix. */
const ELEMENTS = 2 ** 22

export interface PictureOptions {
  /** What the tensor is called. */
  readonly name?: string
}

/**
 * A tensor in a format. Of more than two dimensions the last two are drawn, of one a single row.
 * @returns the text of an SVG file, at most about a megabyte
 */
export function drawParts(stored: StoredParts, { name = 'tensor' }: PictureOptions = {}): string {
  // Ready-made arrays do not tell which elements the tensor holds.
  const known = stored.parts.every((p) => p.storage.entries)
    ? stored
    : convertTensor(partsToCoords(stored), stored.instance, stored.given, stored.fill)
  const parts = known.parts.map((part): StoragePart => ({ part, held: heldEntries(part, known) }))
  const dims = drawn(known.shape)
  const matrix = parts.map(({ part, held }): MatrixPart => {
    return { entries: plane(held.coords, dims), around: around(part, known, dims) }
  })
  const cuts = cutsOf(known.instance, known.shape, known.given)
  const cutsAt = (d: number): number[] => cuts.filter((c) => c.dim === d).flatMap((c) => [...c.at])
  const n = parts.reduce((sum, p) => sum + p.held.coords[0]!.length, 0)
  const slots = parts.reduce((sum, p) => sum + p.part.storage.size, 0)
  const legend = parts.map(({ part, held }) => ({
    label: part.part.label,
    format: part.part.instance.text,
    stored: held.coords[0]!.length,
    slots: part.storage.size,
  }))
  return page(
    `${name} as ${known.instance.text}`,
    `${about(known.shape, n, dims)}, ${count(slots)} slots, ${percent(slots === 0 ? 0 : (slots - n) / slots)} padding`,
    (x, y) =>
      drawMatrix(sides(known.shape, dims), matrix, { rows: cutsAt(dims[0]), columns: cutsAt(dims[1]) }, x, y),
    legend,
    parts,
  )
}

/** A tensor by its coordinates alone. */
export function drawCoords(tensor: CoordTensor, { name = 'tensor' }: PictureOptions = {}): string {
  const dims = drawn(tensor.shape)
  const matrix: MatrixPart = { entries: plane(tensor.coords, dims), around: null }
  const n = tensor.coords[0]?.length ?? 0
  return page(
    name,
    about(tensor.shape, n, dims),
    (x, y) => drawMatrix(sides(tensor.shape, dims), [matrix], { rows: [], columns: [] }, x, y),
    [],
    [],
  )
}

type Dims = readonly [number, number]

/** Rows and columns of the picture; −1: none. */
const drawn = (shape: readonly number[]): Dims => [shape.length - 2, shape.length - 1]

const sides = (shape: readonly number[], [r, c]: Dims): readonly [number, number] => [
  r < 0 ? 1 : shape[r]!,
  shape[c]!,
]

const plane = (coords: readonly Int32Array[], [r, c]: Dims): readonly [Int32Array, Int32Array] => [
  r < 0 ? new Int32Array(coords[c]!.length) : coords[r]!,
  coords[c]!,
]

function about(shape: readonly number[], n: number, [r]: Dims): string {
  const all = shape.reduce((a, b) => a * b, 1)
  const more = r > 0 ? `, drawn over the last two of ${shape.length} dimensions` : ''
  return `${shape.map(count).join(' × ')}, ${count(n)} nonzeros (${percent(all === 0 ? 0 : n / all)})${more}`
}

/** Blocks; else what dense axes store besides the entries; else nothing. */
function around(
  part: StoragePart['part'],
  stored: StoredParts,
  dims: Dims,
): Boxes | readonly [Int32Array, Int32Array] | null {
  if (part.storage.size === 0) return null
  const blocks = dims[0] < 0 ? null : blocksOf(part, stored, dims, ELEMENTS)
  if (blocks) return blocks
  const n = part.held ?? 0
  if (part.storage.size === n) return null
  const elements = elementsOf(part, stored, ELEMENTS)
  return elements && elements[0]!.length > n ? plane(elements, dims) : null
}

interface LegendEntry {
  readonly label: string
  readonly format: string
  readonly stored: number
  readonly slots: number
}

function page(
  title: string,
  subtitle: string,
  panel: (x: number, y: number) => MatrixPanel,
  legend: readonly LegendEntry[],
  parts: readonly StoragePart[],
): string {
  const top = MARGIN + 48
  const matrix = panel(MARGIN, top)
  const beside = MARGIN + matrix.width + 32
  // Long matrices have their legend below.
  const below = WIDTH - beside - MARGIN < 260
  const key = drawLegend(
    legend,
    below ? MARGIN : beside,
    below ? top + matrix.height + 24 : top,
    WIDTH - MARGIN - (below ? MARGIN : beside),
    below ? 0 : matrix.height,
  )
  let y = below ? top + matrix.height + 24 + key.height : top + Math.max(matrix.height, key.height)
  const out = [
    text(MARGIN, MARGIN + 14, fitted(title, WIDTH - 2 * MARGIN, 18), {
      'font-size': 18,
      'font-weight': 'bold',
    }),
    text(MARGIN, MARGIN + 34, fitted(subtitle, WIDTH - 2 * MARGIN, 12)),
    matrix.content,
    key.content,
  ]
  if (parts.length > 0) {
    y += 44
    out.push(
      text(MARGIN, y, 'As stored', { 'font-size': 15, 'font-weight': 'bold' }),
      text(MARGIN + 84, y, 'one square a slot, or several; padding is hatched'),
    )
    const storage = drawStorage(parts, MARGIN, y + 16, WIDTH - 2 * MARGIN)
    out.push(storage.content)
    y += 16 + storage.height
  }
  const height = Math.ceil(y + MARGIN)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, sans-serif" font-size="12" fill="${NEUTRAL}" role="img">
<title>${escaped(title)}</title>
<desc>${escaped(subtitle)}</desc>
<defs>${HATCHING}</defs>
${out.filter((s) => s !== '').join('\n')}
</svg>
`
}

/** A line for each part; in columns where one column would be longer than the matrix. */
function drawLegend(entries: readonly LegendEntry[], x: number, y: number, width: number, height: number) {
  const wide = Math.max(1, Math.floor(width / 210))
  const columns = Math.min(
    wide,
    Math.max(1, Math.ceil((entries.length * LINE) / Math.max(LINE, height || LINE * 4))),
  )
  const lines = Math.ceil(entries.length / columns)
  const room = width / columns
  const content = entries.map((e, k) => {
    const left = x + Math.floor(k / lines) * room
    const base = y + (k % lines) * LINE + 11
    const padding = e.slots > e.stored ? `, ${percent((e.slots - e.stored) / e.slots)} padding` : ''
    const name = e.label === '' ? e.format : `${e.label}: ${e.format}`
    const line = `${name}, ${count(e.stored)}${padding}`
    return element(
      'g',
      {},
      `<title>${escaped(line)}</title>${element('rect', { x: left, y: base - 10, width: 11, height: 11, fill: colorOf(k) })}${text(left + 18, base, fitted(line, room - 26, 12))}`,
    )
  })
  return { content: content.join('\n'), height: lines * LINE }
}
