/**
 * Two layers, of which the first is rectified, with activations [columns, inputs] at both ends: what is between lies the other
 * way round, and the kernels that transpose count. Against PyTorch's dense layers, whose epilogues are cuBLAS's.
 */
import { dense } from '../../../src/node.ts'
import { tileWise } from '../../../src/prune.ts'
import { entryOf, type PythonResult } from '../../peers/python.ts'
import { widen } from '../blocks.ts'
import { type Candidate, fieldOf } from '../candidates.ts'
import { type Contestant, compete } from '../case.ts'
import { Chain } from '../chain.ts'
import { inputs } from '../declared.ts'
import { allowed, PRECISION, Tally, type Verdict } from '../expected.ts'
import { Formats } from '../formats.ts'
import { keptOf, layerField, leastOf } from '../layer-contestants.ts'
import type { OurDevice, OurRun } from '../ours.ts'
import type { Kept, Layer } from '../pruned-layers.ts'
import { Activations, bindLayer, GRANULARITY, layersAsked, percent } from '../pruned-layers.ts'
import { choose } from '../random.ts'
import type { Session } from '../session.ts'
import { networkName, networksOf } from './tile-wise-python.ts'

const SUITE = 'tile-wise-ffn'
/** Multiply-adds that expectations may take. */
const WORK = 2e8
const F16_NAN = 0x7e00

export async function networks(
  s: Session,
  layers: readonly Layer[],
  python: readonly PythonResult[],
): Promise<void> {
  const transposes = fieldOf('tile-wise-transpose', s.options.schedules)
  const field = layerField('tile-wise-tw', s.options.schedules)
  for (const pair of networksOf(layers)) {
    const { size } = pair[0]
    const name = networkName(size.inputs, size.outputs, size.columns)
    const X = new Activations(size, Date.now() & 0xffff)
    for (const sparsity of layersAsked(s.options).sparsities) {
      if (s.late()) return
      if (s.has(SUITE, name, percent(sparsity))) continue
      const pattern = tileWise({ granularity: GRANULARITY })
      const first = await keptOf(s, pair[0], pattern, sparsity)
      const second = await keptOf(s, pair[1], pattern, sparsity)
      if (!first || !second) continue
      const network = new Network(pair, [first, second], X)
      const formats = [new Formats(), new Formats()] as const
      try {
        const on = await s.cuda()
        const entries = await compete(
          pairsOf(field.candidates, transposes.candidates).map(([c, turn]) =>
            network.contestant(on, c, turn, formats),
          ),
          null,
          s,
        )
        const flops = leastOf(s, first, size).flops + leastOf(s, second, pair[1].size).flops
        await s.done({
          suite: SUITE,
          data: name,
          at: percent(sparsity),
          entries: [...entries, ...python.filter((r) => r.id === name).map(entryOf)],
          checked: network.checked,
          floor: null,
          flops,
          standard: null,
        })
      } finally {
        for (const f of formats) await f.free()
      }
    }
  }
}

/** All layers with the first transposition, the first layer with all of these. */
const pairsOf = (layers: readonly Candidate[], turns: readonly Candidate[]): [Candidate, Candidate][] => [
  ...turns.slice(0, 1).flatMap((turn) => layers.map((c): [Candidate, Candidate] => [c, turn])),
  ...turns.slice(1).flatMap((turn) => layers.slice(0, 1).map((c): [Candidate, Candidate] => [c, turn])),
]

class Network {
  readonly #layers: readonly [Layer, Layer]
  readonly #kept: readonly [Kept, Kept]
  readonly #X: Activations
  readonly #rows: Int32Array
  #expected: readonly Row[] | undefined

  constructor(layers: readonly [Layer, Layer], kept: readonly [Kept, Kept], X: Activations) {
    this.#layers = layers
    this.#kept = kept
    this.#X = X
    const { columns } = layers[0].size
    const each = kept[0].bits.length + kept[1].bits.length
    this.#rows = choose(
      Math.min(columns, 512, Math.max(1, Math.floor(WORK / each))),
      columns,
      Date.now() & 0xffff,
    )
  }

  get checked(): string {
    return `${this.#rows.length} rows by element, the rest for being numbers`
  }

  contestant(
    on: OurDevice,
    candidate: Candidate,
    transpose: Candidate,
    formats: readonly [Formats, Formats],
  ): Contestant {
    return {
      name: `${candidate.text} twice, between ${transpose.text}`,
      side: 'ours',
      enter: async () => {
        const chain = await this.#chain(on, candidate, transpose, formats)
        try {
          await chain.run()
        } catch (error) {
          chain.free()
          throw error
        }
        return {
          check: async () => this.#check(await chain.last.values(chain.last.output.name)),
          scout: () => chain.scout(),
          measure: (us) => chain.measure(us),
          samples: (options) => chain.samples(options),
          free: () => chain.free(),
        }
      },
    }
  }

  async #chain(
    on: OurDevice,
    candidate: Candidate,
    transpose: Candidate,
    formats: readonly [Formats, Formats],
  ): Promise<Chain> {
    const { inputs: narrow, outputs: wide, columns } = this.#layers[0].size
    // What is between comes from the kernel before; until then it is no number.
    const unknown = (rows: number): Uint16Array => new Uint16Array(rows * columns).fill(F16_NAN)
    const runs: OurRun[] = []
    try {
      runs.push(await turned(on, transpose, [columns, narrow], this.#X.bits))
      for (const [k, low] of [0, -Infinity].entries()) {
        const X = unknown(k === 0 ? narrow : wide)
        runs.push(await bindLayer(on, candidate, formats[k]!, this.#kept[k]!, X, this.#layers[k]!.bias, low))
      }
      runs.push(await turned(on, transpose, [narrow, columns], unknown(narrow)))
      const from = (run: OurRun, k: number): string => run.inputs[k === 1 || k === 2 ? 1 : 0]!.name
      return new Chain(
        on,
        runs.map((run, k) => ({ run, from: from(run, k) })),
      )
    } catch (error) {
      for (const run of runs) run.free()
      throw error
    }
  }

  #check(got: ArrayLike<number>): Verdict {
    if (!(got instanceof Uint16Array)) throw new Error('results are not f16')
    const Y = widen(got)
    const width = this.#layers[0].size.inputs
    const tally = new Tally()
    this.#expected ??= Array.from(this.#rows, (row) => this.#row(row))
    for (const { row, want, scale, bound } of this.#expected)
      for (let o = 0; o < width; o++)
        tally.add(() => `element (${row}, ${o})`, Y[row * width + o]!, want[o]!, scale[o]!, bound[o]!)
    tally.whole(Y)
    return tally.verdict
  }

  /** A row in float64. What the hidden ones are off by, stored in f16, goes through the second layer. */
  #row(row: number): Row {
    const [{ size, bias }, second] = this.#layers
    const p = PRECISION.f16
    const x = this.#X.values.subarray(row * size.inputs, (row + 1) * size.inputs)
    const hidden = product(this.#kept[0], x, bias)
    const h = hidden.want.map((v) => Math.max(0, v))
    const off = h.map((v, j) => allowed(size.inputs, p) * hidden.scale[j]! + p.output * v)
    const { want, scale } = product(this.#kept[1], h, second.bias)
    const through = product(
      this.#kept[1],
      off,
      second.bias.map(() => 0),
    ).scale
    const bound = want.map(
      (v, o) => allowed(size.outputs, p) * scale[o]! + p.output * Math.abs(v) + through[o]!,
    )
    return { row, want, scale, bound }
  }
}

interface Row {
  readonly row: number
  readonly want: Float64Array
  readonly scale: Float64Array
  readonly bound: Float64Array
}

/** A transposition of `values`. */
async function turned(
  on: OurDevice,
  candidate: Candidate,
  shape: readonly number[],
  values: Uint16Array,
): Promise<OurRun> {
  const ready = await on.ready(candidate)
  if (inputs(ready.source).length !== 1) throw new Error(`${ready.source.name} has more than one input`)
  return on.prepare(ready, { parts: null, milliseconds: 0, bytes: 0 }, dense(shape, values, 'f16'), {})
}

/** W x + b, and the sums of magnitudes. */
function product({ csr }: Kept, x: ArrayLike<number>, bias: ArrayLike<number>) {
  const { rows, indptr, indices, values } = csr
  const want = Float64Array.from({ length: rows }, (_, r) => bias[r]!)
  const scale = want.map(Math.abs)
  for (let r = 0; r < rows; r++)
    for (let e = indptr[r]!; e < indptr[r + 1]!; e++) {
      const term = values[e]! * x[indices[e]!]!
      want[r]! += term
      scale[r]! += Math.abs(term)
    }
  return { want, scale }
}
