/** Selection of micro-tile rules (PIT) for tensors whose zeros are known at run time: by measured covered fractions. */
import { writesOf } from '../../analysis/sparsity/writes.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Buffer1, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { formatOfOrder } from '../../ir/formats/format.ts'
import { extentsOf } from '../../run/bind/sources/coordinate-sources.ts'
import { Compilation } from '../../run/compile/compile.ts'
import { Executable } from '../../run/execution/execute.ts'
import type { Device, DeviceKind } from '../../runtime/device.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { bindCandidate, candidateOf } from '../built/candidates.ts'
import { compileSteps } from '../built/compile-code.ts'
import type { FillRatioStatistic } from '../dispatch/dispatch-conditions.ts'
import { storedFraction } from '../dispatch/fill-ratio.ts'
import type { AnyKernel } from '../dispatch/schedules.ts'
import { elementsOf } from '../dispatch/statistics.ts'
import type { RunInputs } from '../inputs/bound-inputs.ts'
import { instanceOf } from '../inputs/format-instances.ts'
import { type MicroTile, type MicroTileFormat, microTiles } from './micro-tiles.ts'

/** Extents of the dense tiles that are compared by default. */
const EXTENTS = [1, 8, 32]

/** Prices of a micro-tile rule, relative to the time of a statement of the dense kernel. */
interface Prices {
  /** Of a slot in a large micro-tile. */
  readonly slot: number
  /** Of loading what the slots of a micro-tile share, relative to `slot`. */
  readonly sharedLoad: number
  /** Of an element in index construction. */
  readonly element: number
  /** Factor of both if results are permuted, because they are added atomically. */
  readonly permuted: number
}

/**
 * GPUs: fitted to ReLU layers of 4096 × 4096 × 1024 and 8192 × 3072 × 768 in f32 on an H200, whose dense kernel computes many more statements
 * than it loads elements.
 */
const GPU: Prices = { slot: 2, sharedLoad: 3.7, element: 55, permuted: 4 }
const PRICES: Readonly<Record<DeviceKind, Prices>> = {
  cpu: { slot: 1, sharedLoad: 0.5, element: 1, permuted: 1 },
  webgpu: GPU,
  cuda: GPU,
}

/** A rule with a price on data. */
export interface MeasuredRule {
  readonly tile: MicroTile & { readonly format: MicroTileFormat }
  /** Name of the format in schedules. */
  readonly name: string
  /** Stored slots of covered tiles / dense size, with padding. */
  readonly covered: number
  /** Time of the slots in covered tiles, and of index construction, relative to the dense kernel (estimated). */
  readonly cost: number
  /** The largest share of covered tiles for which the rule is cheaper than the dense kernel. */
  readonly limit: number
}

export interface RuleSelection<K = AnyKernel> {
  readonly measured: readonly MeasuredRule[]
  /** At most one rule for each tensor, which can be applied together in this order. */
  readonly selected: readonly MeasuredRule[]
  /** The kernel under the selected rules. */
  readonly kernel: K
}

/**
 * Measures the rules of a kernel without steps on data, and selects the cheapest for each tensor.
 * @param tile - Extents of the dense tile by axis; empty: rules of several extents are compared
 * @param isWanted - Tensors whose rules are measured; rules that are slower than the dense kernel whatever they cover are left out
 * @throws SptError `bind/…` for the data, `api/argument` for the tile
 */
export async function selectRules<K extends AnyKernel>(
  kernel: K,
  device: Device,
  inputs: RunInputs,
  tile: Readonly<Record<string, number>> = {},
  isWanted?: (tensor: string) => boolean,
): Promise<RuleSelection<K>> {
  const rules = (Object.keys(tile).length > 0 ? [undefined] : EXTENTS)
    .flatMap((extent) => microTiles(kernel, tile, extent, isWanted))
    .flatMap((rule) => (rule.format ? [{ ...rule, format: rule.format }] : []))
  const data = await valuesOf(kernel, device, inputs, new Set(rules.map((r) => r.dimension.tensor)))
  const shares = new Map([...data.tensors].map(([name, t]) => [name, nonzeroShare(t)]))
  const measured = rules.flatMap((rule) => {
    const price = priceOf(data, device.kind, rule)
    const isSlower = price.slot * (shares.get(rule.dimension.tensor) ?? 0) + price.index >= 1
    return isWanted && isSlower ? [] : [measuredRule(data, price, rule)]
  })
  const selected: MeasuredRule[] = []
  let under = kernel
  for (const rule of measured.filter((r) => r.cost < 1).sort((a, b) => a.cost - b.cost)) {
    const { tensor } = rule.tile.dimension
    if (selected.some((r) => r.tile.dimension.tensor === tensor)) continue
    const next = resultOrError(() => under.live(tensor, rule.tile.format.format, { inPlace: true }))
    if (next instanceof SptError) continue
    under = next as K
    selected.push(rule)
  }
  return { measured, selected, kernel: under }
}

/** The fill ratio of a rule by its name in conditions. */
export const ratioOf = ({
  tile,
  name,
}: Pick<MeasuredRule, 'tile' | 'name'>): readonly [string, FillRatioStatistic] => {
  const { tensor } = tile.dimension
  const instance = instanceOf(formatOfOrder(tile.format.format, tile.extents.length), [])
  return [`fill_ratio(${tensor}, ${name})`, { kind: 'fill_ratio', tensor, live: true, instance }]
}

interface Data {
  /** The kernel with the temporaries as outputs. */
  readonly kernel: Kernel1
  readonly tensors: ReadonlyMap<string, Tensor>
  readonly sizes: ReadonlyMap<string, number>
}

/** The values of inputs, and of temporaries after a run. */
async function valuesOf(
  base: AnyKernel,
  device: Device,
  inputs: RunInputs,
  names: ReadonlySet<string>,
): Promise<Data> {
  const { source } = base.compilation
  const isKept = (b: Buffer1): boolean => b.role === 'local' && names.has(b.name)
  const buffers = source.buffers.map((b): Buffer1 => (isKept(b) ? { ...b, role: 'out' } : b))
  const kernel = { ...source, buffers }
  const code = await compileSteps<AnyKernel>(base.compiledAs(Compilation.of(kernel)), device)
  const bound = bindCandidate(candidateOf(code, inputs))
  const executable = await Executable.create(code.program, bound, { source: code.source })
  if (source.buffers.some(isKept)) await executable.run()
  const tensors = new Map<string, Tensor>()
  for (const name of names) tensors.set(name, await executable.read(name))
  executable.free()
  code.release()
  return { kernel, tensors, sizes: bound.params }
}

/** The share of the elements that are not zero, which every rule covers. Null if the tensor is not dense, or empty. */
export function nonzeroShare(t: Tensor | undefined): number | null {
  if (t?.kind !== 'dense' || !t.values || t.values.length === 0) return null
  // Without the sign, because -0 is zero, too.
  const bits = t.dtype === 'f16' || t.dtype === 'bf16' ? 0x7fff : null
  let nonzeros = 0
  for (const x of t.values) if (bits === null ? x : Number(x) & bits) nonzeros++
  return nonzeros / t.values.length
}

interface Price {
  /** Time of a slot, relative to a statement of the dense kernel. */
  readonly slot: number
  /** Time of index construction, relative to the dense kernel. */
  readonly index: number
}

function priceOf(
  { kernel: source, sizes }: Data,
  kind: DeviceKind,
  { dimension, extents }: MeasuredRule['tile'],
): Price {
  const { tensor } = dimension
  const lengths = extentsOf(source, sizes)
  const size = (axes: readonly string[]): number => axes.reduce((n, a) => n * (lengths.get(a) ?? 1), 1)
  const work = writesOf(source)
    .filter((w) => w.loads.some((l) => l.buffer === tensor))
    .reduce((n, w) => n + size(w.iterations.flatMap((it) => it.iters.map((x) => x.axis))), 0)
  const { slot, sharedLoad, element, permuted } = PRICES[kind]
  const factor = dimension.results === 'permuted' ? permuted : 1
  const elements = size(source.buffers.find((b) => b.name === tensor)!.axes)
  const slots = extents.reduce((a, b) => a * b)
  return { slot: factor * slot * (1 + sharedLoad / slots), index: (factor * element * elements) / work }
}

function measuredRule(
  { kernel: source, tensors, sizes }: Data,
  { slot, index }: Price,
  tile: MeasuredRule['tile'],
): MeasuredRule {
  const { tensor } = tile.dimension
  const { text, equalFormats } = tile.format
  const name = equalFormats[0] ?? text.split(' ')[1]!
  const values = tensors.get(tensor)!
  const [, ratio] = ratioOf({ tile, name })
  const covered = storedFraction(ratio, values, () => elementsOf(source, tensor, values, sizes), {})
  return { tile, name, covered, cost: covered * slot + index, limit: Math.max(0, 1 - index) / slot }
}

/** The selection as declarations: formats, the schedule of the rules, and a dispatch between the rules and the dense kernel. */
export function rulesText(
  kernel: {
    readonly name: string
    readonly schedules: readonly string[]
    readonly dispatches: readonly string[]
  },
  { selected }: Pick<RuleSelection, 'selected'>,
): string {
  const taken = new Set([...kernel.schedules, ...kernel.dispatches])
  const fresh = (name: string): string => (taken.has(name) ? fresh(`${name}_`) : name)
  const [rules, dense, choice] = [fresh('rules'), fresh('dense'), fresh('by_rules')].map(
    (s) => `${kernel.name}.${s}`,
  )
  const ratio = (r: MeasuredRule): string => `${ratioOf(r)[0]} < ${Math.max(0.01, r.limit).toFixed(2)}`
  const steps = selected.map((r) => `${r.tile.dimension.tensor} as ${r.name} live in place`)
  const block =
    steps.length === 1
      ? ` ${steps[0]} `
      : steps
          .map((s) => `\n  ${s}`)
          .join('')
          .concat('\n')
  return [
    ...new Set(
      selected.flatMap(({ tile: { format } }) => (format.equalFormats.length > 0 ? [] : [format.text])),
    ),
    `schedule ${rules} {${block}}\n`,
    `schedule ${dense} {}\n`,
    `schedule ${choice} choose {\n  when (${selected.map(ratio).join(' and ')}) ${rules!.split('.')[1]}\n  otherwise ${dense!.split('.')[1]}\n}\n`,
  ].join('\n')
}
