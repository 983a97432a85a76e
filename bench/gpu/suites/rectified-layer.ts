/**
 * Two layers with a rectification between them, of which the second reads what is not zero alone: f16 with f32 sums, H by neurons and
 * by tokens, in groups of tokens or neurons that are off and in single elements. The same total against PyTorch, and against our
 * own dense schedules.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dense } from '../../../src/node.ts'
import { entryOf, type PythonResult, pythonPeers, type RectifiedCase } from '../../peers/python.ts'
import { widen } from '../blocks.ts'
import { breakEvenTexts } from '../break-even.ts'
import { type Candidate, fieldOf, parseCandidate } from '../candidates.ts'
import { type Contestant, compete } from '../case.ts'
import { floor } from '../ceilings.ts'
import { checkProduct, ours, withTypes } from '../contestants.ts'
import { inputs } from '../declared.ts'
import { overview } from '../entry-table.ts'
import { ExpectedLayers } from '../expected-layers.ts'
import { heldAsked } from '../masked.ts'
import type { OurDevice } from '../ours.ts'
import { percent } from '../pruned-layers.ts'
import { choose } from '../random.ts'
import { type Decided, decided, RectifiedLayer, type RectifiedShape } from '../rectified-draw.ts'
import type { Session } from '../session.ts'
import { ELEMENT, TILES, type Tile, tileName, tilesAsked } from '../tiles.ts'

const SUITE = 'rectified-layer'
const SHAPE: RectifiedShape = { tokens: 2048, inputs: 4096, hidden: 16_384, outputs: 4096 }
/** Shares of H that are not zero. */
const HELD = [0.5, 0.1, 0.05, 0.01]
/** Tokens whose results are computed in float64: each takes a hundred million products. */
const SAMPLED = 6
const PYTORCH = 'PyTorch'
const DENSE = 'dense '

/** How H lies, which kernels tell by their names. */
const LAYOUTS = ['neurons', 'tokens'] as const
type Layout = (typeof LAYOUTS)[number]

const layoutOf = ({ kernel }: Candidate): Layout =>
  kernel.split('_').includes('rows') ? 'tokens' : 'neurons'

interface Pattern {
  readonly tile: Tile
  readonly held: number
}

const nameOf = ({ tile }: Pattern): string =>
  tile === ELEMENT ? 'single elements' : `${tile.join(' × ')} off`
const idOf = (p: Pattern): string => `${tileName(p.tile)} ${percent(1 - p.held)}`

export async function rectifiedLayers(s: Session): Promise<void> {
  const { quick, matrices } = s.options
  const tiles = tilesAsked(matrices, [...TILES, ELEMENT])
  const patterns = (quick ? tiles.slice(0, 1) : tiles).flatMap((tile) =>
    (quick ? [0.05] : heldAsked(s.options, HELD)).map((held) => ({ tile, held })),
  )
  await rectifiedLayersOf(s, patterns, SHAPE)
  const mine = s.cases.filter((c) => c.suite.startsWith(SUITE))
  for (const suite of new Set(mine.map((c) => c.suite)))
    s.say(overview(mine.filter((c) => c.suite === suite)))
  for (const text of breakEvenTexts(mine, [PYTORCH, DENSE])) s.say(text)
}

export async function rectifiedLayersOf(
  s: Session,
  patterns: readonly Pattern[],
  shape: RectifiedShape,
): Promise<void> {
  const drawn = patterns.map((p) => ({ ...p, way: decided(shape, p.tile, p.held, Date.now() & 0xffff) }))
  const python = await peers(s, drawn, shape)
  const layer = new RectifiedLayer(shape, Date.now() & 0xffff)
  const D = widen(layer.D)
  for (const p of drawn) {
    const open = LAYOUTS.filter((l) => !s.has(suiteOf(l, p), nameOf(p), percent(1 - p.held)))
    if (open.length === 0) continue
    layer.decide(p.way)
    const expected = expectedOf(layer, D)
    for (const layout of open) {
      if (s.late()) return
      await one(s, layout, p, p.way, layer, expected, python)
    }
  }
}

const suiteOf = (layout: Layout, { tile }: Pattern): string => `${SUITE}-${layout}-${tileName(tile)}`

/** All cases in one process: it takes seconds to start. */
const peers = (
  s: Session,
  patterns: readonly (Pattern & { readonly way: Decided })[],
  shape: RectifiedShape,
): Promise<readonly PythonResult[]> =>
  pythonPeers('rectified_layer.py', s, (folder) =>
    patterns.map((p, c): RectifiedCase => {
      const file = join(folder, String(c))
      writeFileSync(`${file}-x`, p.way.X)
      writeFileSync(`${file}-u`, p.way.U)
      return { id: idOf(p), file, kept: p.way.kept, ...shape }
    }),
  )

function expectedOf({ shape, X, U }: RectifiedLayer, D: Float32Array): ExpectedLayers {
  const { tokens, inputs: k } = shape
  const term = { gate: 1, U: widen(U), D }
  return new ExpectedLayers(
    { ...shape, isTurned: true },
    tokens,
    choose(Math.min(SAMPLED, tokens), tokens, Date.now() & 0xffff),
    (t) => widen(X.subarray(t * k, (t + 1) * k)),
    () => [term],
  )
}

async function one(
  s: Session,
  layout: Layout,
  p: Pattern,
  { count }: Decided,
  layer: RectifiedLayer,
  expected: ExpectedLayers,
  python: readonly PythonResult[],
): Promise<void> {
  const on = await s.cuda()
  const asked = s.options.schedules.filter((text) => layoutOf(parseCandidate(text)) === layout)
  const field = fieldOf(`${SUITE}-${layout}`, asked)
  const whole = fieldOf(`${SUITE}-${layout}-dense`, []).candidates
  const entries = await compete(
    [
      ...whole.map(
        (c): Contestant => ({ ...ourLayer(on, c, layer, expected), name: `${DENSE}${c.text}`, side: 'peer' }),
      ),
      ...field.candidates.map((c) => ourLayer(on, c, layer, expected)),
    ],
    field.standard,
    s,
  )
  const { tokens: m, inputs: k, hidden: h, outputs: n } = layer.shape
  const flops = 2 * (m * h * k + count * n)
  await s.done({
    suite: suiteOf(layout, p),
    data: nameOf(p),
    at: percent(1 - p.held),
    entries: [...entries, ...python.filter((r) => r.id === idOf(p)).map(entryOf)],
    checked: expected.checked,
    floor: s.ceilings
      ? floor(s.ceilings, { flops, bytes: 2 * (m * k + h * k + h * n + m * n) }, 'f16')
      : null,
    flops,
    standard: field.standard,
  })
}

/** A choice is what its runs lead it to. */
const ourLayer = (
  on: OurDevice,
  candidate: Candidate,
  { shape, X, U, D }: RectifiedLayer,
  expected: ExpectedLayers,
): Contestant =>
  ours(
    candidate.text,
    async () => {
      const { tokens, inputs: k, hidden, outputs } = shape
      const ready = await on.ready(candidate)
      const [, u, d] = inputs(ready.source)
      if (!u || !d) throw new Error(`${ready.source.name} has too few inputs`)
      return on.led(ready, dense([tokens, k], X, 'f16'), {
        [u.name]: dense([hidden, k], U, 'f16'),
        [d.name]: dense([hidden, outputs], D, 'f16'),
      })
    },
    (run) => checkProduct(run, expected),
    withTypes,
  )
