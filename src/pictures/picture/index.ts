/**
 * SVG pictures of tensors in formats: the matrix with its parts, and the storage of each part. Pictures are derived from axes, maps
 * and positions, so every format can be drawn.
 */
import type { StoredParts } from '../../storage/entries/stored-parts.ts'
import { convertTensor, occupiedEntries, partsToCoords } from '../../storage/entries/stored-parts.ts'
import type { CoordTensor } from '../../storage/tensor.ts'
import { type Boxes, blocksOf, cutsOf, elementsOf, type MatrixPart } from './blocks.ts'
import { crop, type Window, windowOf } from './detail.ts'
import { drawLegend, type LegendEntry, LINE, legendLine } from './layout.ts'
import { drawMatrix, type MatrixPanel, SIDE } from './matrix-panel.ts'
import { drawIndexArrays, drawStorage, HATCHING, type StoragePart } from './storage-panel.ts'
import { count, element, escapeXml, fitText, NEUTRAL, partColors, percent, text } from './svg.ts'

const WIDTH = 960
/** Minimum width of a picture. */
const NARROWEST = 480
const MARGIN = 24
/** Pixels below a matrix for the label of its columns. */
const AXIS = 18
/** Minimum pixels for a legend next to the matrix; also the maximum of a detail's longer side. */
const MIN_LEGEND_WIDTH = 260
const DETAIL = 360
/** Number of elements above which padding is not drawn in the matrix. */
const ELEMENTS = 2 ** 22

export interface PictureOptions {
  /** Name of the tensor in the picture. */
  readonly name?: string
}

/**
 * Draws a tensor in a format. With more than two dimensions, the last two are drawn; with one, a single row.
 * @returns the text of an SVG file, at most about a megabyte
 */
export function drawParts(stored: StoredParts, { name = 'tensor' }: PictureOptions = {}): string {
  // Ready-made arrays do not record the occupied slots, so the tensor is converted again.
  const converted = stored.parts.every((p) => p.entries)
    ? stored
    : convertTensor(partsToCoords(stored), stored.instance, stored.given, stored.fill)
  const parts = converted.parts.map(
    (part): StoragePart => ({ part, occupied: occupiedEntries(part, converted) }),
  )
  const dims = drawnDimensions(converted.shape)
  const matrix = parts.map(({ part, occupied }): MatrixPart => {
    return {
      entries: projectCoords(occupied.coords, dims),
      storedCells: storedCells({ part, occupied }, converted, dims),
    }
  })
  const cuts = cutsOf(converted.instance, converted.shape, converted.given)
  const cutsAt = (d: number): number[] => cuts.filter((c) => c.dim === d).flatMap((c) => [...c.boundaries])
  const n = parts.reduce((sum, p) => sum + p.occupied.coords[0]!.length, 0)
  const slots = parts.reduce((sum, p) => sum + p.part.storage.size, 0)
  const legend = parts.map(({ part, occupied }) => ({
    label: part.part.label,
    format: part.part.instance.text,
    stored: occupied.coords[0]!.length,
    slots: part.storage.size,
  }))
  return page(
    `${name} as ${converted.instance.text}`,
    `${summary(converted.shape, n, dims)}, ${count(slots)} slots, ${slots === n ? 'no padding' : `${percent((slots - n) / slots)} padding`}`,
    {
      sides: sides(converted.shape, dims),
      parts: matrix,
      cuts: { rows: cutsAt(dims[0]), columns: cutsAt(dims[1]) },
    },
    legend,
    parts,
  )
}

/** Draws a tensor given by coordinates. */
export function drawCoords(tensor: CoordTensor, { name = 'tensor' }: PictureOptions = {}): string {
  const dims = drawnDimensions(tensor.shape)
  const matrix: MatrixPart = { entries: projectCoords(tensor.coords, dims), storedCells: null }
  const n = tensor.coords[0]?.length ?? 0
  return page(
    name,
    summary(tensor.shape, n, dims),
    { sides: sides(tensor.shape, dims), parts: [matrix], cuts: { rows: [], columns: [] } },
    [],
    [],
  )
}

type Dims = readonly [number, number]

/** Dimensions of the picture's rows and columns; −1 if there is none. */
const drawnDimensions = (shape: readonly number[]): Dims => [shape.length - 2, shape.length - 1]

const sides = (shape: readonly number[], [r, c]: Dims): readonly [number, number] => [
  r < 0 ? 1 : shape[r]!,
  shape[c]!,
]

const projectCoords = (coords: readonly Int32Array[], [r, c]: Dims): readonly [Int32Array, Int32Array] => [
  r < 0 ? new Int32Array(coords[c]!.length) : coords[r]!,
  coords[c]!,
]

function summary(shape: readonly number[], n: number, [r]: Dims): string {
  const elements = shape.reduce((a, b) => a * b, 1)
  const dimensionNote = r > 0 ? `, drawn over the last two of ${shape.length} dimensions` : ''
  return `${shape.map(count).join(' × ')}, ${count(n)} nonzeros (${percent(elements === 0 ? 0 : n / elements)})${dimensionNote}`
}

/** Blocks; otherwise all slots, if dense axes store padding; otherwise `null`. */
function storedCells(
  { part, occupied }: StoragePart,
  stored: StoredParts,
  dims: Dims,
): Boxes | readonly [Int32Array, Int32Array] | null {
  if (part.storage.size === 0) return null
  const blocks = dims[0] < 0 ? null : blocksOf(part, stored, dims, ELEMENTS)
  if (blocks) return blocks
  const n = occupied.coords[0]!.length
  if (part.storage.size === n) return null
  const elements = elementsOf(part, stored, ELEMENTS)
  return elements && elements[0]!.length > n ? projectCoords(elements, dims) : null
}

interface Plane {
  readonly sides: readonly [number, number]
  readonly parts: readonly MatrixPart[]
  readonly cuts: { readonly rows: readonly number[]; readonly columns: readonly number[] }
}

function page(
  title: string,
  subtitle: string,
  plane: Plane,
  legend: readonly LegendEntry[],
  parts: readonly StoragePart[],
): string {
  const top = MARGIN + 48
  const window = windowOf(plane.sides, plane.parts)
  const colors = partColors(legend.length > 0 ? legend.map((e) => e.label) : [''])
  const matrix = drawMatrix(plane.sides, plane.parts, colors, plane.cuts, MARGIN, top, SIDE, window)
  const matrixBottom = top + matrix.height + AXIS
  const besideLeft = MARGIN + matrix.width + 32
  const isNarrow = WIDTH - besideLeft - MARGIN < MIN_LEGEND_WIDTH
  const isLong = legend.length * LINE > SIDE
  const left = isNarrow ? MARGIN : besideLeft
  const availableWidth = WIDTH - MARGIN - left
  const below = matrixBottom + 24
  let y = isNarrow ? below : top
  const sections: string[] = []
  if (!isLong) {
    sections.push(drawLegend(legend, colors, left, y, availableWidth, 1))
    y += legend.length * LINE + (legend.length > 0 ? 24 : 0)
  }
  if (window) {
    const detail = drawDetail(plane, colors, window, left, y, availableWidth)
    sections.push(isNarrow ? '' : drawConnectors(matrix, detail, left, y), detail.content)
    y += detail.height + 16
  }
  y = Math.max(y, matrixBottom)
  if (isLong) {
    const columns = 4
    sections.push(drawLegend(legend, colors, MARGIN, y + 24, WIDTH - 2 * MARGIN, columns))
    y += 24 + Math.ceil(legend.length / columns) * LINE
  }
  const legendWidth = Math.max(0, ...legend.map((e) => 18 + 7 * legendLine(e).length))
  let right = Math.max(
    NARROWEST,
    left + legendWidth,
    MARGIN + 7 * subtitle.length,
    MARGIN + 11 * title.length,
  )
  const out = [
    text(MARGIN, MARGIN + 14, fitText(title, WIDTH - 2 * MARGIN, 18), {
      'font-size': 18,
      'font-weight': 'bold',
    }),
    text(MARGIN, MARGIN + 34, fitText(subtitle, WIDTH - 2 * MARGIN, 12)),
    matrix.content,
    axisLabels(plane.sides, matrix, top),
    ...sections,
  ]
  if (parts.length > 0) {
    y += 44
    out.push(
      text(MARGIN, y, 'As stored', { 'font-size': 15, 'font-weight': 'bold' }),
      text(MARGIN + 84, y, 'slots that hold no nonzero are hatched'),
    )
    const storage = drawStorage(parts, colors, MARGIN, y + 16, WIDTH - 2 * MARGIN)
    out.push(storage.content)
    y += 16 + storage.height
    right = Math.max(right, MARGIN + storage.width)
    const arrays = drawIndexArrays(parts, MARGIN, y + 40)
    if (arrays) {
      out.push(
        text(MARGIN, y + 26, 'Index arrays', { 'font-size': 15, 'font-weight': 'bold' }),
        arrays.content,
      )
      y += 40 + arrays.height
      right = Math.max(right, MARGIN + arrays.width)
    }
  }
  const width = window || isLong ? WIDTH : Math.min(WIDTH, Math.ceil(right) + MARGIN)
  const height = Math.ceil(y + MARGIN)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="12" fill="${NEUTRAL}" role="img">
<title>${escapeXml(title)}</title>
<desc>${escapeXml(subtitle)}</desc>
<defs>${HATCHING}</defs>
${out.filter((s) => s !== '').join('\n')}
</svg>
`
}

/** Ranges of rows and columns along the sides of a matrix whose upper left corner is at (MARGIN, top). */
function axisLabels([rows, columns]: Plane['sides'], matrix: MatrixPanel, top: number): string {
  const range = (n: number): string => (n > 1 ? `0 … ${count(n - 1)}` : '0')
  const [x, y] = [MARGIN - 7, top + matrix.height]
  return (
    text(MARGIN, y + 14, `columns ${range(columns)}`) +
    (rows === 1 ? '' : text(x, y, `rows ${range(rows)}`, { transform: `rotate(-90 ${x} ${y})` }))
  )
}

/** Lines from the marked window of the matrix to its enlarged drawing at (x, y). */
function drawConnectors(
  { highlight }: MatrixPanel,
  detail: { panelHeight: number },
  x: number,
  y: number,
): string {
  if (!highlight) return ''
  const from = highlight.x + highlight.width
  const d = `M${from} ${highlight.y}L${x} ${y}M${from} ${highlight.y + highlight.height}L${x} ${y + detail.panelHeight}`
  return element('path', { d, fill: 'none', stroke: NEUTRAL, 'stroke-dasharray': '3 3' })
}

function drawDetail(
  { sides, parts, cuts }: Plane,
  colors: readonly string[],
  w: Window,
  x: number,
  y: number,
  availableWidth: number,
) {
  const cutsInside = (boundaries: readonly number[], from: number, to: number): number[] =>
    boundaries.filter((c) => c > from && c < to).map((c) => c - from)
  const panel = drawMatrix(
    [w.bottom - w.top, w.right - w.left],
    parts.map((p) => crop(p, w)),
    colors,
    { rows: cutsInside(cuts.rows, w.top, w.bottom), columns: cutsInside(cuts.columns, w.left, w.right) },
    x,
    y,
    Math.min(DETAIL, availableWidth),
  )
  const range = (from: number, to: number): string => `${count(from)} … ${count(to - 1)}`
  const rows = sides[0] === 1 ? '' : `rows ${range(w.top, w.bottom)}, `
  const caption = `marked: ${rows}columns ${range(w.left, w.right)}`
  return {
    content: panel.content + text(x, y + panel.height + 16, fitText(caption, availableWidth, 12)),
    height: panel.height + 16,
    panelHeight: panel.height,
  }
}
