/**
 * Products C = A B whose first operand has zeros that are known only in a run, f16 with f32 sums, 4096³ and primes: A is dense, and what
 * finds its tiles is measured with the product, against the dense product of cuBLAS. Tiles of A are 32 × 1 (a column of a panel of
 * rows), 1 × 64 (a piece of a row), or 32 × 64; random ones hold anything.
 */
import { fieldOf } from '../candidates.ts'
import { compete } from '../case.ts'
import { floor } from '../ceilings.ts'
import { overview } from '../entry-table.ts'
import { heldAsked, type Masked, make, ourMasked } from '../masked.ts'
import { type Shape, shapesAsked } from '../named.ts'
import { percent } from '../pruned-layers.ts'
import type { Session } from '../session.ts'
import { TILES, type Tile, tileName, tilesAsked, tileText } from '../tiles.ts'
import { dynamicOnWebgpu } from './dynamic-webgpu.ts'
import { library } from './gemm.ts'

const SHAPES: readonly Shape[] = [
  [4096, 4096, 4096],
  [3001, 5003, 1109],
]
/** Shares of tiles that hold anything, in the order of how much there is to do. */
const HELD = [0.01, 0.05, 0.1, 0.5, 1]

export async function dynamic(s: Session): Promise<void> {
  const { quick, matrices, layers } = s.options
  if (layers?.on === 'webgpu') return dynamicOnWebgpu(s)
  const tiles = tilesAsked(matrices, TILES)
  const shapes = shapesAsked(matrices, SHAPES)
  for (const tile of quick ? tiles.slice(0, 1) : tiles) {
    for (const shape of quick ? shapes.slice(0, 1) : shapes)
      for (const held of quick ? [0.05] : heldAsked(s.options, HELD)) {
        if (s.late()) break
        await maskedProduct(s, tile, held, shape)
      }
    s.say(overview(s.cases.filter((c) => c.suite === suiteOf(tile))))
  }
}

const suiteOf = (tile: Tile): string => `dynamic-${tileName(tile)}`

/** One pattern. */
export async function maskedProduct(
  s: Session,
  tile: Tile,
  held: number,
  shape: Masked['shape'],
): Promise<void> {
  const [suite, name, at] = [suiteOf(tile), `${tileText(tile)}, ${shape.join(' × ')}`, percent(held)]
  if (s.has(suite, name, at)) return
  const masked = make(shape, tile, held)
  const field = fieldOf(suite, s.options.schedules)
  const device = await s.cuda()
  const [m, n, k] = shape
  const flops = 2 * masked.count * n
  const entries = await compete(
    [library(s, 'f16', masked), ...field.candidates.map((c) => ourMasked(device, c, masked))],
    field.standard,
    s,
  )
  await s.done({
    suite,
    data: name,
    at,
    entries,
    checked: masked.expected.checked,
    floor: s.ceilings ? floor(s.ceilings, { flops, bytes: 2 * (m * k + k * n + m * n) }, 'f16') : null,
    flops,
    standard: field.standard,
  })
}
