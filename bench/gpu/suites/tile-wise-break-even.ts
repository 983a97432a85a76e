/** From which sparsity on tiles are faster than the dense product, and whether what is chosen is ever slower than that. */
import { tileWise } from '../../../src/prune.ts'
import { type Case, compete, type Entry, standardOf } from '../case.ts'
import { Formats } from '../formats.ts'
import { keptOf, LayerPeers, layerField, leastOf, OurLayer } from '../layer-contestants.ts'
import { Activations, GRANULARITY, type Layer, percent, sizeName } from '../pruned-layers.ts'
import type { Session } from '../session.ts'
import { comparable, type Times } from '../timing.ts'

const SUITE = 'tile-wise-break-even'
/** How near to each other the last two sparsities are. */
const STEP = 0.02
const MOST = 0.95
/** A little more than noise. */
const SLOWER = 1.03

export async function breakEven(s: Session, layers: readonly Layer[]): Promise<void> {
  for (const layer of layers) {
    const X = new Activations(layer.size, Date.now() & 0xffff)
    const tried: Case[] = []
    /** Whether tiles are faster; nothing where that was not found. */
    const faster = async (sparsity: number): Promise<boolean | undefined> => {
      if (s.late()) return undefined
      const c = before(s, layer, sparsity) ?? (await one(s, layer, X, sparsity))
      if (c) tried.push(c)
      const ratio = c && ratioOf(c, tilesOf(c))
      return ratio === undefined ? undefined : ratio > 1
    }
    let [slow, fast] = [0, MOST]
    // At 0 for what is chosen there.
    const ends = [await faster(slow), await faster(fast)]
    while (ends[0] === false && ends[1] === true && fast - slow > STEP) {
      const middle = (slow + fast) / 2
      const found = await faster(middle)
      if (found === undefined) break
      if (found) fast = middle
      else slow = middle
    }
    s.say(`${sizeName(layer.size)}: ${said(ends, slow, fast)}`)
    const worst = tried
      .map((c) => ({ at: c.at, ratio: ratioOf(c, standardOf(c)?.times) ?? Infinity }))
      .sort((a, b) => a.ratio - b.ratio)[0]
    if (worst && Number.isFinite(worst.ratio))
      s.say(
        `  what is chosen takes ${(1 / worst.ratio).toFixed(3)} of dense cuBLAS's time at worst (${worst.at})` +
          `${1 / worst.ratio > SLOWER ? `, more than ${SLOWER}` : ''}`,
      )
  }
}

const said = ([first, last]: readonly (boolean | undefined)[], slow: number, fast: number): string =>
  first === true
    ? 'tiles are faster than dense cuBLAS at every sparsity'
    : last === true
      ? `tiles are faster than dense cuBLAS from ${percent(fast)} on (slower at ${percent(slow)})`
      : last === false
        ? `tiles are slower than dense cuBLAS up to ${percent(MOST)}`
        : 'break-even was not found: something did not run'

const before = (s: Session, layer: Layer, sparsity: number): Case | undefined =>
  s.cases.find((c) => c.suite === SUITE && c.data === sizeName(layer.size) && c.at === percent(sparsity))

const fastest = (c: Case, which: (e: Entry) => boolean): Times | undefined =>
  c.entries
    .filter(which)
    .flatMap((e) => e.times ?? [])
    .sort((a, b) => a.event - b.event)[0]

/** The fastest but for what is chosen, which may be no tiles; that one where nothing else ran. */
const tilesOf = (c: Case): Times | undefined =>
  fastest(c, (e) => e.side === 'ours' && e.name !== c.standard) ?? fastest(c, (e) => e.side === 'ours')

/** The time of dense cuBLAS over another. */
function ratioOf(c: Case, own: Times | undefined): number | undefined {
  const dense = fastest(c, (e) => e.side === 'peer')
  if (!own || !dense) return undefined
  const [a, b] = comparable(own, dense)
  return b / a
}

async function one(s: Session, layer: Layer, X: Activations, sparsity: number): Promise<Case | undefined> {
  const kept = await keptOf(s, layer, tileWise({ granularity: GRANULARITY }), sparsity)
  if (!kept) return undefined
  const field = layerField('tile-wise-tw', s.options.schedules)
  const on = await s.cuda()
  const own = new OurLayer(layer, X, kept)
  const libraries = new LayerPeers(s, await s.stream(), layer, X)
  const formats = new Formats()
  try {
    const entries = await compete(
      [...libraries.dense, ...field.candidates.map((c) => own.contestant(on, c, formats))],
      field.standard,
      s,
      Infinity,
    )
    const done: Case = {
      suite: SUITE,
      data: sizeName(layer.size),
      at: percent(sparsity),
      entries,
      checked: own.checked,
      ...leastOf(s, kept, layer.size),
      standard: field.standard,
    }
    await s.done(done)
    return done
  } finally {
    await formats.free()
    libraries.free()
  }
}
