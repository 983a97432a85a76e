/**
 * Zeros that are found in each run, on WebGPU: products against our dense ones there, with the share of zeros from which on they are
 * faster, and finding alone against our CUDA on the same GPU.
 */
import { breakEvenText } from '../break-even.ts'
import { fieldOf } from '../candidates.ts'
import { type Case, type Contestant, compete } from '../case.ts'
import { overview } from '../entry-table.ts'
import { heldAsked, type Masked, make, ourMasked } from '../masked.ts'
import { percent } from '../pruned-layers.ts'
import type { Session } from '../session.ts'
import { TILES, type Tile, tileName, tilesAsked, tileText } from '../tiles.ts'

const SIZE = 4096
/** Shares of tiles that hold anything: the time is on a line between them. */
const HELD = [0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 1]
/** Types of operands; sums are f32. */
const TYPES = ['f32', 'f16'] as const

const suiteOf = (tile: Tile, type: string): string => `dynamic-webgpu-${tileName(tile)}-${type}`

export async function dynamicOnWebgpu(s: Session): Promise<void> {
  const { quick, matrices } = s.options
  s.say(`WebGPU: ${(await s.webgpu()).device.name}`)
  const tiles = tilesAsked(matrices, TILES)
  const held = quick ? [0.05] : heldAsked(s.options, HELD)
  for (const tile of quick ? tiles.slice(0, 1) : tiles)
    for (const share of held) {
      if (s.late()) break
      await maskedOnWebgpu(s, tile, share, [SIZE, SIZE, SIZE])
    }
  const zeros = new Map(held.map((share) => [percent(share), 1 - share]))
  const mine = s.cases.filter((c) => c.suite.startsWith('dynamic-webgpu-'))
  for (const suite of new Set(mine.map((c) => c.suite)))
    s.say(overview(mine.filter((c) => c.suite === suite)))
  s.say(breakEvenText(mine, (c) => zeros.get(c.at) ?? Number.NaN))
}

/** One pattern, a case for each type: what is dense is in a peer's place. */
export async function maskedOnWebgpu(
  s: Session,
  tile: Tile,
  held: number,
  shape: Masked['shape'],
): Promise<void> {
  const [name, at] = [tileText(tile), percent(held)]
  if (TYPES.every((type) => s.has(suiteOf(tile, type), name, at))) return
  const on = await s.webgpu()
  const masked = make(shape, tile, held)
  const field = fieldOf(`dynamic-webgpu-${tileName(tile)}`, s.options.schedules)
  const whole = fieldOf('dynamic-webgpu-dense', []).candidates
  // All are measured: the fastest of each type is asked for.
  const entries = await compete(
    [
      ...whole.map(
        (c): Contestant => ({ ...ourMasked(on, c, masked), name: `dense ${c.text}`, side: 'peer' }),
      ),
      ...field.candidates.map((c) => ourMasked(on, c, masked)),
    ],
    field.standard,
    s,
    Infinity,
  )
  for (const type of TYPES) {
    const mine = entries.filter((e) => e.facts?.types?.toString().startsWith(type) ?? false)
    if (!mine.some((e) => e.side === 'ours')) continue
    const failed = entries.filter((e) => e.facts?.types === undefined)
    const own: Case = {
      suite: suiteOf(tile, type),
      data: name,
      at,
      entries: [...mine, ...failed],
      checked: masked.expected.checked,
      floor: null,
      flops: 2 * masked.count * shape[1],
      standard: field.standard,
    }
    await s.done(own)
  }
}
