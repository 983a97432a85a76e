/** Selection of micro-tile rules (PIT) for tensors whose zeros are known at run time: by measured covered fractions. */
import { writesOf } from '../../analysis/sparsity/writes.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { formatOfOrder } from '../../ir/formats/format.ts'
import { extentsOf } from '../../run/bind/sources/coordinate-sources.ts'
import type { Device } from '../../runtime/device.ts'
import { bindCandidate, candidateOf } from '../built/candidates.ts'
import { compileSteps } from '../built/compile-code.ts'
import { PreparedSchedule } from '../dispatch/prepared-schedule.ts'
import type { RunInputs } from '../inputs/bound-inputs.ts'
import { instanceOf } from '../inputs/format-instances.ts'
import type { Kernel } from './kernel.ts'
import type { MicroTile, MicroTileFormat } from './micro-tiles.ts'

/** A rule with a price on data. */
export interface MeasuredRule {
  readonly tile: MicroTile & { readonly format: MicroTileFormat }
  /** Name of the format in schedules. */
  readonly name: string
  /** Stored slots of covered tiles / dense size, measured on the device. In [0, 1]. */
  readonly covered: number
  /** Executed statements that read the tensor with the rule, and index construction, relative to the dense kernel. */
  readonly cost: number
  /** The largest share of covered tiles for which the rule is cheaper than the dense kernel. */
  readonly limit: number
}

export interface RuleSelection {
  readonly measured: readonly MeasuredRule[]
  /** At most one rule for each tensor, which can be applied together in this order. */
  readonly selected: readonly MeasuredRule[]
}

/**
 * Measures the rules of a kernel without steps on data, and selects the cheapest for each tensor.
 * @param tile - Extents of the dense tile by axis
 * @throws SptError `bind/…` for the data, `api/argument` for the tile
 */
export async function selectRules(
  kernel: Kernel,
  device: Device,
  inputs: RunInputs,
  tile: Readonly<Record<string, number>>,
): Promise<RuleSelection> {
  const measured: MeasuredRule[] = []
  for (const rule of kernel.inspect.microTiles(tile))
    if (rule.format)
      measured.push(await measuredRule(kernel, device, inputs, { ...rule, format: rule.format }))
  const selected: MeasuredRule[] = []
  let under = kernel
  for (const rule of measured.filter((r) => r.cost < 1).sort((a, b) => a.cost - b.cost)) {
    const { tensor } = rule.tile.dimension
    if (selected.some((r) => r.tile.dimension.tensor === tensor)) continue
    const next = resultOrError(() => under.live(tensor, rule.tile.format.format, { inPlace: true }))
    if (next instanceof SptError) continue
    under = next
    selected.push(rule)
  }
  return { measured, selected }
}

async function measuredRule(
  kernel: Kernel,
  device: Device,
  inputs: RunInputs,
  rule: MeasuredRule['tile'],
): Promise<MeasuredRule> {
  const { tensor } = rule.dimension
  const { format, text, equalFormats } = rule.format
  const code = await compileSteps<Kernel>(kernel.live(tensor, format, { inPlace: true }), device)
  const bound = bindCandidate(candidateOf(code, inputs))
  const live = new Map([
    [
      '',
      {
        kind: 'fill_ratio',
        tensor,
        live: true,
        instance: instanceOf(formatOfOrder(format, rule.extents.length), []),
      },
    ],
  ] as const)
  const prepared = await PreparedSchedule.create({ live }, '', code, bound)
  if (prepared.commands.length === 0) await prepared.executable.run()
  const ratios = await (prepared.commands.length > 0 ? prepared.sample() : prepared.read())
  prepared.executable.free()
  code.release()
  const covered = ratios.get('')!
  const { source } = kernel
  const extents = extentsOf(source, bound.params)
  const size = (axes: readonly string[]): number => axes.reduce((n, a) => n * (extents.get(a) ?? 1), 1)
  const work = writesOf(source)
    .filter((w) => w.loads.some((l) => l.buffer === tensor))
    .reduce((n, w) => n + size(w.iterations.flatMap((it) => it.iters.map((x) => x.axis))), 0)
  const index = size(source.buffers.find((b) => b.name === tensor)!.axes) / work
  return {
    tile: rule,
    name: equalFormats[0] ?? text.split(' ')[1]!,
    covered,
    cost: covered + index,
    limit: 1 - index,
  }
}

/** The selection as declarations: formats, the schedule of the rules, and a dispatch between the rules and the dense kernel. */
export function rulesText(kernel: Kernel, { selected }: RuleSelection): string {
  const taken = new Set([...kernel.schedules, ...kernel.dispatches])
  const fresh = (name: string): string => (taken.has(name) ? fresh(`${name}_`) : name)
  const [rules, dense, choice] = [fresh('rules'), fresh('dense'), fresh('by_rules')].map(
    (s) => `${kernel.name}.${s}`,
  )
  const ratio = (r: MeasuredRule): string =>
    `fill_ratio(${r.tile.dimension.tensor}, ${r.name}) < ${Math.max(0.01, r.limit).toFixed(2)}`
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
