/** Dynamic sparsity: how much of each `live` tensor the latest run stored, and how long its builder takes. */
import type { PreparedKernel } from '../../api/compiled.ts'
import { foundShare } from '../../api/coverage.ts'
import { extentsOf } from '../../run/bind/coordinate-sources.ts'
import { commandsFinding } from '../../run/same-kernel.ts'

export interface Built {
  readonly tensor: string
  /** Stored slots / dense size. */
  readonly share: number
  /** Milliseconds of the launches that build the index; `null` if they cannot run separately. */
  readonly milliseconds: number | null
}

/** Builders are timed this often; the median counts. */
const REPEATS = 5

export async function builtBy({ executable }: PreparedKernel): Promise<readonly Built[]> {
  const { program, bound } = executable
  const { plan, device } = program
  const extents = extentsOf(bound.kernel, bound.params)
  const out: Built[] = []
  for (const found of plan.found ?? []) {
    const names = found.parts.map((p) => p.counts)
    const axes = bound.kernel.buffers.find((b) => b.name === found.tensor)?.axes
    if (!axes || !names.every((name) => plan.buffers.some((b) => b.name === name))) continue
    const counts = await Promise.all(names.map((name) => executable.values(name)))
    const elements = axes.reduce((n, a) => n * (extents.get(a) ?? 0), 1)
    const commands = commandsFinding(executable, names)
    const times = commands.length > 0 ? (await device.time(commands, REPEATS)).toSorted((a, b) => a - b) : []
    const share = foundShare(found, counts, elements, bound.params)
    out.push({ tensor: found.tensor, share, milliseconds: times[times.length >> 1] ?? null })
  }
  return out
}
