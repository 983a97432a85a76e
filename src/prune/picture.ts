/** Draws masks as SVG: the share of kept elements in each region of each layer. */
import { expectArgument, isRecord } from '../ast/diagnostics/expect-argument.ts'
import {
  colorOf,
  count,
  element,
  escapeXml,
  fitText,
  NEUTRAL,
  percent,
  Rectangles,
  text,
} from '../pictures/picture/svg.ts'
import { checkMasks, checkShapes } from './layers.ts'
import type { LayerShape, Mask } from './types.ts'

const WIDTH = 960
const MARGIN = 24
/** Pixels of a layer's longer side (SIDE), and between layers (GAP). */
const SIDE = 104
const GAP = 14
const CAPTION = 30
/** Maximum number of cells over all layers; each takes about 20 bytes of SVG. */
const MAX_CELLS = 40_000
const MAX_LAYERS = 1000
const MAX_SIDE = 52
const SHADES = 8

export interface MaskPicture {
  readonly shapes: readonly LayerShape[]
  readonly masks: readonly Mask[]
  readonly rest?: readonly Mask[]
}

/**
 * Draws masks as an SVG file of at most about a megabyte: the first thousand layers, each as regions shaded by their share of
 * kept elements.
 */
export function renderMasks(drawn: MaskPicture, title = 'masks'): string {
  expectArgument(isRecord(drawn), 'what is drawn', drawn, '{ shapes, masks, rest }')
  expectArgument(typeof title === 'string', 'a title', title, 'a text')
  const { shapes, masks, rest } = drawn
  checkShapes(shapes)
  checkMasks('masks', masks, shapes)
  if (rest !== undefined) checkMasks('rest', rest, shapes)
  const drawnShapes = shapes.slice(0, MAX_LAYERS)
  const across = Math.floor((WIDTH - 2 * MARGIN + GAP) / (SIDE + GAP))
  const regions = Math.max(
    4,
    Math.min(MAX_SIDE, Math.floor(Math.sqrt(MAX_CELLS / Math.max(1, drawnShapes.length)))),
  )
  const top = MARGIN + 72
  const panels = drawnShapes.map((shape, k) => {
    const x = MARGIN + (k % across) * (SIDE + GAP)
    const y = top + Math.floor(k / across) * (SIDE + GAP + CAPTION)
    return panel(shape, densities(shape, masks[k]!, rest?.[k], regions), x, y)
  })
  const height = top + Math.ceil(drawnShapes.length / across) * (SIDE + GAP + CAPTION) + MARGIN
  const limitNote = shapes.length > drawnShapes.length ? `, the first ${count(drawnShapes.length)}` : ''
  const subtitle = `${count(shapes.length)} ${shapes.length === 1 ? 'layer' : 'layers'}${limitNote}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, sans-serif" font-size="11" fill="${NEUTRAL}" role="img">
<title>${escapeXml(title)}</title>
<desc>${escapeXml(subtitle)}</desc>
${text(MARGIN, MARGIN + 14, fitText(title, WIDTH - 2 * MARGIN, 18), { 'font-size': 18, 'font-weight': 'bold' })}
${text(MARGIN, MARGIN + 34, fitText(subtitle, WIDTH - 2 * MARGIN, 11))}
${legend(MARGIN, MARGIN + 44)}
${panels.join('\n')}
</svg>
`
}

function legend(x: number, y: number): string {
  const squares = Array.from({ length: SHADES + 1 }, (_, k) =>
    element('rect', {
      x: x + 104 + 14 * k,
      y,
      width: 12,
      height: 12,
      fill: colorOf(0),
      'fill-opacity': k / SHADES,
      stroke: NEUTRAL,
      'stroke-width': 0.5,
    }),
  )
  const right = x + 104 + 14 * (SHADES + 1) + 4
  return `${text(x, y + 10, 'weights kept: 0 %')}${squares.join('')}${text(right, y + 10, '100 %')}`
}

interface Densities {
  readonly down: number
  readonly across: number
  /** Share of kept elements of each region, row-major. */
  readonly kept: Float64Array
  readonly share: number
}

function densities(
  { rows, cols }: LayerShape,
  mask: Mask,
  rest: Mask | undefined,
  maxRegions: number,
): Densities {
  const longer = Math.max(rows, cols)
  const regions = (n: number): number => Math.min(n, Math.max(1, Math.round((maxRegions * n) / longer)))
  const down = regions(rows)
  const across = regions(cols)
  const kept = new Float64Array(down * across)
  const sizes = new Float64Array(down * across)
  const column = Int32Array.from({ length: cols }, (_, c) => Math.floor((c * across) / cols))
  let keptCount = 0
  for (let r = 0, i = 0; r < rows; r++) {
    const line = Math.floor((r * down) / rows) * across
    for (let c = 0; c < cols; c++, i++) {
      const region = line + column[c]!
      const isKept = mask[i]! | (rest === undefined ? 0 : rest[i]!)
      kept[region] = kept[region]! + isKept
      sizes[region] = sizes[region]! + 1
      keptCount += isKept
    }
  }
  return { down, across, kept: kept.map((n, k) => n / sizes[k]!), share: keptCount / (rows * cols) }
}

function panel(
  { name, rows, cols }: LayerShape,
  { down, across, kept, share }: Densities,
  x: number,
  y: number,
): string {
  const longer = Math.max(rows, cols)
  const width = Math.max(2, (SIDE * cols) / longer)
  const height = Math.max(2, (SIDE * rows) / longer)
  const [dx, dy] = [width / across, height / down]
  const shadeOf = (region: number): number => Math.ceil(kept[region]! * SHADES)
  const shades = Array.from({ length: SHADES + 1 }, () => new Rectangles())
  for (let r = 0; r < down; r++)
    for (let c = 0; c < across; ) {
      // Neighbours of equal shade are joined to one rectangle.
      const shade = shadeOf(r * across + c)
      const start = c
      while (c < across && shadeOf(r * across + c) === shade) c++
      if (shade > 0) shades[shade]!.add(x + start * dx, y + r * dy, (c - start) * dx, dy)
    }
  const frame = element('rect', { x, y, width, height, fill: 'none', stroke: NEUTRAL, 'stroke-width': 0.5 })
  const paths = shades.map((s, k) => s.path({ fill: colorOf(0), 'fill-opacity': k / SHADES }))
  const captions =
    text(x, y + SIDE + 12, fitText(name, SIDE, 11)) +
    text(x, y + SIDE + 25, fitText(`${count(rows)} × ${count(cols)}, ${percent(share)}`, SIDE, 11))
  const description = `${name}: ${count(rows)} × ${count(cols)}, ${percent(share)} kept`
  return element('g', {}, element('title', {}, escapeXml(description)) + frame + paths.join('') + captions)
}
