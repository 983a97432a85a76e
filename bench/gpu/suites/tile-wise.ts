/**
 * Layers pruned in patterns, f16 with f32 sums, activations [inputs, columns]: ours against dense cuBLAS, and against what
 * libraries have for pruned weights. Every layer is pruned for itself.
 */
import {
  blockWise,
  elementWise,
  type Pattern,
  tileElementWise,
  tileWise as tiles,
  tileVectorWise,
} from '../../../src/prune.ts'
import type { PythonResult } from '../../peers/python.ts'
import type { Field } from '../candidates.ts'
import { type Contestant, compete, type Entry } from '../case.ts'
import { Formats } from '../formats.ts'
import { keptInputs, keptOf, LayerPeers, layerField, leastOf, OurLayer } from '../layer-contestants.ts'
import { overview } from '../layer-table.ts'
import {
  Activations,
  GRANULARITY,
  Layer,
  layerSizes,
  layersAsked,
  percent,
  sizeName,
} from '../pruned-layers.ts'
import type { Session } from '../session.ts'
import { breakEven } from './tile-wise-break-even.ts'
import { networks } from './tile-wise-ffn.ts'
import { layerPeers, resultsOf } from './tile-wise-python.ts'
import { tileWiseOnWebgpu } from './tile-wise-webgpu.ts'

interface Row {
  /** And the name of its field in `candidates.json`. */
  readonly suite: string
  /** `null`: nothing is pruned. */
  readonly pattern: Pattern | null
}

const granularity = GRANULARITY
const TW: Row = { suite: 'tile-wise-tw', pattern: tiles({ granularity }) }

/** What is timed of ours, against dense cuBLAS. */
const ROWS: readonly Row[] = [
  TW,
  { suite: 'tile-wise-tew', pattern: tileElementWise({ granularity, delta: 0.01 }) },
  { suite: 'tile-wise-tvw', pattern: tileVectorWise({ granularity }) },
  { suite: 'tile-wise-bw', pattern: blockWise({ rows: 64, cols: 64 }) },
  { suite: 'tile-wise-dense', pattern: null },
]

export async function tileWise(s: Session): Promise<void> {
  if (layersAsked(s.options).on === 'webgpu') return tileWiseOnWebgpu(s)
  const sizes = layerSizes(s.options.matrices, s.options.quick)
  const layers = sizes.map((size, k) => new Layer(size, (Date.now() + 7 * k) & 0xffff))
  s.say('every layer is pruned for itself; no two have a mask in common')
  for (const { suite } of ROWS)
    if (layerField(suite, s.options.schedules).candidates.length === 0)
      s.say(`${suite} is left out: kernels/ has no schedule of it`)
  const python = await layerPeers(s, layers)
  for (const layer of layers) {
    const X = new Activations(layer.size, Date.now() & 0xffff)
    for (const sparsity of layersAsked(s.options).sparsities) {
      // What has been measured is still in the table.
      if (s.late()) break
      if (!s.has(TW.suite, sizeName(layer.size), percent(sparsity))) await one(s, layer, X, sparsity, python)
    }
  }
  await networks(s, layers, python)
  if (layersAsked(s.options).breakEven) await breakEven(s, layers)
  const table = overview(s.cases, sizes.map(sizeName))
  if (table !== '') s.say(table)
}

/** All contestants of a layer at one sparsity, in one run; a case for each of ours, and for each library's. */
async function one(
  s: Session,
  layer: Layer,
  X: Activations,
  sparsity: number,
  python: readonly PythonResult[],
): Promise<void> {
  const { size } = layer
  const on = await s.cuda()
  const libraries = new LayerPeers(s, await s.stream(), layer, X)
  const entrants: { readonly of: string; readonly contestant: Contestant }[] = []
  const enter = (of: string, all: readonly Contestant[]): void =>
    void entrants.push(...all.map((contestant) => ({ of, contestant })))
  const rows: { readonly row: Row; readonly field: Field; readonly own: OurLayer }[] = []
  const formats: Formats[] = []
  try {
    enter('dense', libraries.dense)
    for (const row of ROWS) {
      const field = layerField(row.suite, s.options.schedules)
      const kept = field.candidates.length > 0 && (await keptOf(s, layer, row.pattern, sparsity))
      if (!kept) continue
      const [own, built] = [new OurLayer(layer, X, kept), new Formats()]
      rows.push({ row, field, own })
      formats.push(built)
      enter(
        row.suite,
        field.candidates.map((c) => own.contestant(on, c, built)),
      )
    }
    enter('tile-wise-ceiling', [libraries.few(keptInputs(size, sparsity))])
    const single = await keptOf(s, layer, elementWise(), sparsity)
    if (single) enter('tile-wise-csr', libraries.single(single))
    const all = await compete(
      entrants.map((e) => e.contestant),
      null,
      s,
      Infinity,
    )
    const of = (what: string): Entry[] => all.filter((_, k) => entrants[k]!.of === what)
    const dense = [...of('dense'), ...resultsOf(python, size, 'dense')]
    const done = (suite: string, peers: readonly Entry[], { row, field, own }: (typeof rows)[number]) =>
      s.done({
        suite,
        data: sizeName(size),
        at: percent(sparsity),
        entries: [...peers, ...of(row.suite)],
        checked: own.checked,
        ...leastOf(s, own.kept, size),
        standard: field.standard,
      })
    for (const r of rows) await done(r.row.suite, dense, r)
    const tw = rows.find((r) => r.row === TW)
    const others: readonly (readonly [suite: string, peers: readonly Entry[]])[] = [
      ['tile-wise-ceiling', of('tile-wise-ceiling')],
      ['tile-wise-2of4', resultsOf(python, size, '2:4')],
      ['tile-wise-csr', of('tile-wise-csr')],
    ]
    for (const [suite, peers] of others) if (tw && peers.length > 0) await done(suite, peers, tw)
  } finally {
    for (const f of formats) await f.free()
    libraries.free()
  }
}
