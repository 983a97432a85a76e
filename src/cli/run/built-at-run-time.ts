/** Dynamic sparsity: fill ratio of each `live` tensor in the latest run, and time of its format builder. */
import type { PreparedKernel } from '../../api/compiled/compiled.ts'
import { fillRatio } from '../../api/dispatch/fill-ratio.ts'
import { extentsOf } from '../../run/bind/sources/coordinate-sources.ts'
import { commandsMeasuring } from '../../run/execution/shared-buffers.ts'

export interface BuiltFormat {
  readonly tensor: string
  /** Stored slots / dense size. */
  readonly share: number
  /** Milliseconds of the launches that build the index; `null` if they cannot run separately. */
  readonly milliseconds: number | null
}

/** Number of timings of a builder; the median is reported. */
const REPEATS = 5

export async function builtFormats({ executable }: PreparedKernel): Promise<readonly BuiltFormat[]> {
  const { program, bound } = executable
  const { plan, device } = program
  const extents = extentsOf(bound.kernel, bound.params)
  const out: BuiltFormat[] = []
  for (const live of plan.runtimeLists ?? []) {
    const counters = live.parts.map((p) => p.counts)
    const axes = bound.kernel.buffers.find((b) => b.name === live.tensor)?.axes
    if (!axes || !counters.every((name) => plan.buffers.some((b) => b.name === name))) continue
    const counts = await Promise.all(counters.map((name) => executable.values(name)))
    const elements = axes.reduce((n, a) => n * (extents.get(a) ?? 0), 1)
    const commands = commandsMeasuring(executable, counters)
    const times = commands.length > 0 ? (await device.time(commands, REPEATS)).toSorted((a, b) => a - b) : []
    const share = fillRatio(live, counts, elements, bound.params)
    out.push({ tensor: live.tensor, share, milliseconds: times[times.length >> 1] ?? null })
  }
  return out
}
